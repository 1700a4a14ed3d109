/** A runner that answers when it is told to. */
import type { Runner, RunnerOutcome } from "../../../actors/worker/runner/runner.ts";

/** The test settles its answers. */
export class HeldRunner implements Runner {
  readonly asked: PromiseWithResolvers<RunnerOutcome>[] = [];
  bytesRead = 0;
  disposed = 0;

  next(): Promise<RunnerOutcome> {
    const answer = Promise.withResolvers<RunnerOutcome>();
    this.asked.push(answer);
    return answer.promise;
  }

  dispose(): void {
    this.disposed++;
  }
}
