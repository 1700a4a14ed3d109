/**
 * The program of a campaign's thread: runs what it is sent, one after the other, and answers each.
 *
 * @module
 */
import { READY, runSeed, type SeedOutcome, type SeedRun } from "./seed_run.ts";

/** What a thread has for a global scope. */
interface ThreadScope {
  onmessage: (event: MessageEvent<SeedRun>) => void;
  postMessage(message: SeedOutcome | typeof READY): void;
}

const scope = globalThis as unknown as ThreadScope;
let last: Promise<void> = Promise.resolve();
scope.onmessage = ({ data }) => {
  // One at a time: what two runs do to globals must not meet.
  last = last.then(async () => scope.postMessage(await runSeed(data)));
};
scope.postMessage(READY);
