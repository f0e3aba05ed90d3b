import { errorRows } from './errors.ts';

errorRows('EIO', 'each kind');
