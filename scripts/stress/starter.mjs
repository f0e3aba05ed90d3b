// @ts-check
// A child's way to who started it.

/** @typedef {{ what: 'ready' } | { what: 'killed' } | { what: 'died' } | { what: 'tried', outcome: number | string } | { what: 'problem', text: string }} Message */

/** Tells it; nobody may be there any more. @param {Message} message */
export function report(message) {
  process.send?.(message, undefined, undefined, () => {});
}

/** @param {string} text what must not be */
export function complain(text) {
  report({ what: 'problem', text });
}

/** Whoever started us is gone: so are we. */
export function endWithStarter() {
  process.on('disconnect', () => process.exit());
}
