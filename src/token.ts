/*
 * node:crypto takes 6 % of a bare start, so it is loaded where it is used; and not by import(), which takes another
 * 3 % for the ES module loader.
 */

/** The token's hash, as it stands in files: SHA-256, hex. */
export function hashToken(token: string): string {
  return process.getBuiltinModule('node:crypto').createHash('sha256').update(token, 'utf8').digest('hex');
}

/** A token nobody can guess. */
export function newToken(): string {
  return process.getBuiltinModule('node:crypto').randomBytes(18).toString('base64url');
}
