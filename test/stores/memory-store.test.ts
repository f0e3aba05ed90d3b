import { storeContract } from './contract.ts';
import { MemoryEngine, MemoryStore } from './memory-store.ts';

storeContract('an engine in memory', () => {
  const engine = new MemoryEngine();
  return {
    open: () => new MemoryStore(engine),
    pass: (ms) => {
      engine.passed += ms;
    },
  };
});
