/* The doctor, in a bundle of its own (scripts/build.mjs). */
export { main } from '../commands/doctor.ts';
