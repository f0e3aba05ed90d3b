import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { formatDuration, parseDuration, after as startTimer, systemClock } from '../src/clock.ts';
import { RunlockError } from '../src/errors.ts';

const DAY_MS = 86_400_000;

describe('parseDuration', () => {
  it.each([
    ['90s', 90_000],
    ['45m', 2_700_000],
    ['2h', 7_200_000],
    ['1d', DAY_MS],
    ['500ms', 500],
    ['1.5h', 5_400_000],
    ['1.1d', 95_040_000],
    ['36500d', 36_500 * DAY_MS],
  ])('reads %s', (text, ms) => {
    expect(parseDuration(text, '--hold')).toBe(ms);
  });

  it.each([
    '',
    '45',
    'm',
    '45 m',
    ' 45m',
    '45m\n',
    '-1m',
    '+1m',
    '1e3s',
    '0x10s',
    '.5h',
    '1.h',
    '1M',
    '1h30m',
    '１m',
    'never',
    '36501d',
    `${'9'.repeat(400)}d`,
    '0s',
    '0.0001ms',
  ])('refuses %j as a usage error that says what, expected and got', (text) => {
    const error = errorOf(() => parseDuration(text, '--hold'));
    expect(error.code).toBe('usage');
    expect(error.message).toMatch(/^--hold: expected a duration .*, got "[\x20-\x7e]{0,80}…?"$/);
  });

  it('takes zero only where the caller does', () => {
    expect(parseDuration('0s', '--kill-after', { zero: true })).toBe(0);
    expect(() => parseDuration('0s', '--hold')).toThrow('expected a duration longer than 0, got "0s"');
  });

  it('names the word that the caller would have taken too', () => {
    expect(() => parseDuration('forever', '--hold', { or: 'never' })).toThrow(', or "never", got "forever"');
  });

  it('shows no hostile text in its message', () => {
    const error = errorOf(() => parseDuration('\u001b[2J\u202e\ud800', '--hold'));
    expect(error.message).toContain('got "\\u{1b}[2J\\u{202e}\\u{d800}"');
  });

  it('always gives whole ms within the bounds, or a usage error', () => {
    const unit = fc.constantFrom('ms', 's', 'm', 'h', 'd', 'x', '');
    fc.assert(
      fc.property(fc.oneof(fc.double({ noNaN: true }), fc.nat()), unit, (number, name) => {
        try {
          const ms = parseDuration(`${number}${name}`, 'x');
          expect(Number.isSafeInteger(ms) && ms > 0 && ms <= 36_500 * DAY_MS).toBe(true);
          expect(Number.isNaN(new Date(Date.now() + ms).getTime())).toBe(false);
        } catch (error) {
          expect(error).toBeInstanceOf(RunlockError);
        }
      }),
    );
  });
});

describe('formatDuration', () => {
  it.each([
    [-5, '0 s'],
    [0, '0 s'],
    [99, '0 s'],
    [300, '0.3 s'],
    [999, '0.9 s'],
    [1000, '1 s'],
    [14_200, '14 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [90_000, '90 s'],
    [120_000, '2 min'],
    [150_000, '2 min 30 s'],
    [52 * 60_000 + 14_000, '52 min'],
    [3_600_000, '1 h'],
    [185 * 60_000, '3 h 5 min'],
    [52 * 3_600_000 + 60_000, '2 d 4 h'],
    [2 * DAY_MS, '2 d'],
  ])('says %d ms as %s', (ms, words) => {
    expect(formatDuration(ms)).toBe(words);
  });

  it('never says more than has passed', () => {
    const units = new Map([
      ['s', 1000],
      ['min', 60_000],
      ['h', 3_600_000],
      ['d', DAY_MS],
    ]);
    fc.assert(
      fc.property(fc.nat({ max: 400 * DAY_MS }), (ms) => {
        let said = 0;
        for (const [, number, unit] of formatDuration(ms).matchAll(/([\d.]+) (\w+)/g)) {
          said += Number(number) * (units.get(unit ?? '') ?? Number.NaN);
        }
        expect(said).toBeLessThanOrEqual(ms);
        expect(ms - said).toBeLessThan(Math.max(1000, ms / 10));
      }),
    );
  });
});

describe('after', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([2 ** 31 - 1, 2 ** 31, 60 * DAY_MS, 36_500 * DAY_MS])('waits %d ms, to the end', (ms) => {
    const callback = vi.fn();
    startTimer(ms, callback);
    vi.advanceTimersByTime(ms - 1);
    expect(callback).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('can be cancelled in any chunk', () => {
    const callback = vi.fn();
    const timer = startTimer(60 * DAY_MS, callback);
    vi.advanceTimersByTime(30 * DAY_MS);
    timer.cancel();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(60 * DAY_MS);
    expect(callback).not.toHaveBeenCalled();
  });

  it('is not moved by a step of the wall clock', () => {
    const callback = vi.fn();
    startTimer(10_000, callback);
    vi.setSystemTime(Date.now() + DAY_MS);
    vi.advanceTimersByTime(9_999);
    expect(callback).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledTimes(1);
  });

  it('never fires for Infinity, and does not take NaN for now', () => {
    const callback = vi.fn();
    const timer = startTimer(Number.POSITIVE_INFINITY, callback);
    vi.advanceTimersByTime(400 * DAY_MS);
    expect(callback).not.toHaveBeenCalled();
    timer.cancel();
    expect(() => startTimer(Number.NaN, callback)).toThrow(RangeError);
  });
});

describe('systemClock.sleep', () => {
  it('is never early', async () => {
    for (let round = 0; round < 20; round += 1) {
      const start = systemClock.monotonic();
      await systemClock.sleep(3.7);
      expect(systemClock.monotonic() - start).toBeGreaterThanOrEqual(3.7);
    }
  });

  it('ends at once, with the reason, when aborted before or during', async () => {
    const reason = new Error('enough');
    await expect(systemClock.sleep(60 * DAY_MS, AbortSignal.abort(reason))).rejects.toBe(reason);
    const controller = new AbortController();
    const sleeping = systemClock.sleep(60 * DAY_MS, controller.signal);
    controller.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
  });

  it('leaves no listener on the signal', async () => {
    const { signal } = new AbortController();
    const remove = vi.spyOn(signal, 'removeEventListener');
    await systemClock.sleep(1, signal);
    expect(remove).toHaveBeenCalledTimes(1);
  });
});

function errorOf(call: () => unknown): RunlockError {
  try {
    call();
  } catch (error) {
    if (error instanceof RunlockError) return error;
    throw error;
  }
  throw new Error('expected a RunlockError');
}
