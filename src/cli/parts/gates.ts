/*
 * Gates, ledgers and what else few calls ask for, in a bundle of its own (scripts/build.mjs): a heartbeat or a status
 * is not to wait until Node has read through them.
 */
export const loadGates = () => import('../gates.ts');
export const loadGate = () => import('../commands/gate.ts');
export const loadInit = () => import('../commands/init.ts');
export const loadLedger = () => import('../commands/ledger.ts');
export const loadPick = () => import('../commands/pick.ts');
