import { errorRows } from './errors.ts';

errorRows('EIO', 'the first of each kind');
