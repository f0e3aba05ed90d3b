import type { Root } from './root.ts';

/** A user of the system that is looked at. */
export interface User {
  readonly name: string;
  readonly uid: number;
  /** The first is the user's own. */
  readonly gids: readonly number[];
  readonly home: string;
}

/** Reads /etc/passwd and /etc/group; who is known by a directory service alone is not in them. */
export function readUsers(root: Root): Map<string, User> {
  const groups = fieldsOf(root.textOf('/etc/group')).map(([, , gid, members = '']) => ({
    gid: Number(gid),
    members: members.split(','),
  }));
  const users = new Map<string, User>();
  for (const [name = '', , uid, gid, , home = ''] of fieldsOf(root.textOf('/etc/passwd'))) {
    if (name === '' || !/^\d+$/.test(uid ?? '')) continue;
    const others = groups.filter(({ members }) => members.includes(name)).map((group) => group.gid);
    users.set(name, {
      name,
      uid: Number(uid),
      gids: [Number(gid), ...others],
      home: home === '' ? '/' : home,
    });
  }
  return users;
}

/** What stands before a number that is a user's: `1000` (systemd), `#1000` (sudo), `:1000` (chpst); null: names alone. */
export type NumberMark = '' | '#' | ':' | null;

/** Who a text names. A name that is all digits goes before the number. */
export function findUser(users: ReadonlyMap<string, User>, text: string, mark: NumberMark): User | null {
  const named = users.get(text);
  if (named !== undefined || mark === null || !text.startsWith(mark)) return named ?? null;
  const number = text.slice(mark.length);
  return [...users.values()].find(({ uid }) => String(uid) === number) ?? null;
}

function fieldsOf(text: string | null): string[][] {
  return (text ?? '').split('\n').map((line) => line.split(':'));
}

/** What the permission bits let a user do; ACLs are not looked at, and Windows has nothing else. */
export function mayAccess(
  user: User,
  stat: { readonly mode: number; readonly uid: number; readonly gid: number },
  wish: 'enter' | 'write' | 'change',
): boolean {
  if (user.uid === 0 || process.platform === 'win32') return true;
  const shift = stat.uid === user.uid ? 6 : user.gids.includes(stat.gid) ? 3 : 0;
  return ((stat.mode >> shift) & BITS[wish]) === BITS[wish];
}

/** `change`: the names in a directory, for which one must enter it as well. */
const BITS = { enter: 0o1, write: 0o2, change: 0o3 };
