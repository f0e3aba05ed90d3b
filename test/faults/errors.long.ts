import { errorRows } from './errors.ts';

for (const kind of ['EIO', 'ENOSPC', 'EACCES'] as const) errorRows(kind, 'every one');
