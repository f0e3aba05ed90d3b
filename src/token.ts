/** The token's hash, as it stands in files: SHA-256, hex. */
export async function hashToken(token: string): Promise<string> {
  const { createHash } = await import('node:crypto');
  return createHash('sha256').update(token, 'utf8').digest('hex');
}

/** A token nobody can guess. */
export async function newToken(): Promise<string> {
  const { randomBytes } = await import('node:crypto');
  return randomBytes(18).toString('base64url');
}
