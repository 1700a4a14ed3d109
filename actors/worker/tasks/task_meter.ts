/** What a task counts: what it gave to clients, and how long its pipeline worked. */
import type { ElementAnswer } from "../protocol.ts";
import type { CompressionWish, OwnStep, Runner, RunnerOutcome } from "../runner/runner.ts";

/** Answers without an element. */
const NO_ELEMENTS: ReadonlySet<ElementAnswer["kind"]> = new Set(["split_end", "end", "passed"]);

/** Counts that never decrease, over all runners that the task has had. */
export class TaskMeter {
  readonly #nowMs: () => number;
  #served = 0;
  #servedBytes = 0;
  #runners = 0;
  #bytesRead = 0;
  #current: Runner | undefined;
  /** Requests that runners are working on. */
  #open = 0;
  #busySinceMs = 0;
  #busyMs = 0;

  /** @param nowMs Monotonic time. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** What the heartbeat reports, up to now. */
  get figures() {
    return {
      served: this.#served,
      servedBytes: this.#servedBytes,
      runnerRestarts: Math.max(0, this.#runners - 1),
      bytesRead: this.#bytesRead + (this.#current?.bytesRead ?? 0),
      busyMs: this.busyMs,
    };
  }

  /** How long a runner was busy, in ms, up to now. */
  get busyMs(): number {
    return this.#busyMs + (this.#open > 0 ? this.#nowMs() - this.#busySinceMs : 0);
  }

  /** Notes what a client gets. */
  handOut(answer: ElementAnswer): void {
    if (NO_ELEMENTS.has(answer.kind)) return;
    this.#served++;
    if ("element" in answer) this.#servedBytes += answer.element.byteLength;
  }

  /** Wraps a runner to measure it. Only one runner is measured at a time. */
  watch(runner: Runner): Runner {
    this.#runners++;
    this.#current = runner;
    let open = 0;
    let disposed = false;
    const begin = () => {
      if (disposed) return;
      open++;
      if (this.#open++ === 0) this.#busySinceMs = this.#nowMs();
    };
    const end = (count: number) => {
      if (disposed || count === 0) return;
      if (this.#open === count) this.#busyMs = this.busyMs;
      this.#open -= count;
      open -= count;
    };
    return {
      get bytesRead() {
        return runner.bytesRead;
      },
      async next(ownStep?: OwnStep, wish?: CompressionWish): Promise<RunnerOutcome> {
        begin();
        try {
          return await runner.next(ownStep, wish);
        } finally {
          end(1);
        }
      },
      recycle: (buffer) => runner.recycle?.(buffer),
      dispose: () => {
        if (disposed) return;
        end(open);
        disposed = true;
        this.#bytesRead += runner.bytesRead;
        this.#current = undefined;
        runner.dispose();
      },
    };
  }
}
