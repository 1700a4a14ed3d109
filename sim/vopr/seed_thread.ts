/**
 * The program of a campaign's thread. It runs the seeds that it receives in order, and answers each.
 */
import { READY, runSeed, type SeedOutcome, type SeedRun } from "./seed_run.ts";

/** The global scope of a thread. */
interface ThreadScope {
  onmessage: (event: MessageEvent<SeedRun>) => void;
  postMessage(message: SeedOutcome | typeof READY): void;
}

const scope = globalThis as unknown as ThreadScope;
let last: Promise<void> = Promise.resolve();
scope.onmessage = ({ data }) => {
  // One at a time, because runs change globals.
  last = last.then(async () => scope.postMessage(await runSeed(data)));
};
scope.postMessage(READY);
