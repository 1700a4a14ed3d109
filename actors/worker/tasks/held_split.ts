/** A split that an ordered task produces, with the elements that were not fetched yet. */
import { LeatError } from "../../../core/error.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import type { Own, StreamPosition } from "../protocol.ts";
import type { OnlySplit, Runner, RunnerOutcome } from "../runner/runner.ts";
import { type SplitItem, SplitItems } from "./split_items.ts";
import type { TaskPipeline } from "./task_pipeline.ts";

/** Limit of the elements produced ahead of requests, for a single reader. */
const AHEAD_ELEMENTS_MAX = 2;
/**
 * This limit for several consumers: higher, because each passes over the elements of the others.
 */
const AHEAD_FOR_CONSUMERS_MAX = 256;
/** Limit of the steps open at the runner: it runs one while the result of another is in transit. */
const PULLING_MAX = 2;

export type AssignedSplit = Omit<OnlySplit, "grant"> & { readonly sequence: number };

interface HeldSplitOptions {
  readonly context: ActorContext;
  /** See `OnlySplit`. */
  readonly grant: number;
  readonly readers: number;
  /** With this many bytes produced ahead of requests, the runner gets no more steps. */
  readonly aheadBytesMax: number;
  readonly pipeline: TaskPipeline;
  /** Called when an element is ready, or the whole split has been produced. */
  readonly onProgress: () => void;
  /** Called when the pipeline's runner has died while it ran the split. */
  readonly onRunnerDied: (error: LeatError) => void;
}

export class HeldSplit {
  readonly #split: AssignedSplit;
  readonly #options: HeldSplitOptions;
  readonly #ready: SplitItems;
  #runner: Runner | undefined;
  #pulling = 0;
  #produced = 0;
  /** How many items a new runner still has to repeat. They are dropped. */
  #toSkip = 0;
  /** Whether all items have been produced; some may wait to be fetched. */
  ended = false;

  constructor(split: AssignedSplit, options: HeldSplitOptions) {
    this.#split = split;
    this.#options = options;
    this.#ready = new SplitItems(options.readers);
  }

  get sequence(): number {
    return this.#split.sequence;
  }

  hasReadyFor(reader: number): boolean {
    return this.#ready.hasFor(reader);
  }

  get isSpent(): boolean {
    return this.ended && this.#ready.length === 0;
  }

  get readyBytes(): number {
    return this.#ready.bytes;
  }

  /** Elements produced, failed ones included. */
  get produced(): number {
    return this.#produced;
  }

  /** Produces items for the waiting requests and a few more, if there is space. */
  pump(waiting: number): void {
    const { readers, aheadBytesMax, pipeline, context: { world } } = this.#options;
    const runner = pipeline.runner ?? pipeline.start();
    if (runner !== this.#runner) {
      this.#runner = runner;
      this.#pulling = 0;
      // The new runner repeats the items of the old one.
      this.#toSkip = this.#produced;
    }
    const aheadMax = world.fault("held_split.nothing_ahead") ? 0 : AHEAD_ELEMENTS_MAX;
    const most = waiting + (readers === 1 ? aheadMax : AHEAD_FOR_CONSUMERS_MAX);
    while (
      !this.ended && this.#pulling < PULLING_MAX && this.#ready.bytes < aheadBytesMax &&
      this.#ready.length + this.#pulling < most
    ) {
      this.#pull(runner);
    }
  }

  #pull(runner: Runner): void {
    this.#pulling++;
    const { context, pipeline, grant, onProgress, onRunnerDied } = this.#options;
    context.run(async () => {
      let outcome: RunnerOutcome | LeatError;
      try {
        const { index, start, stop } = this.#split;
        outcome = await pipeline.step(runner, { index, start, stop, grant });
      } catch (error) {
        outcome = LeatError.from(error, "unavailable");
      }
      // Ignores results (even ends) of a lost runner, and of steps beyond the end.
      if (this.ended || runner !== pipeline.runner) return;
      this.#pulling--;
      if (!(outcome instanceof LeatError)) this.#came(outcome);
      else if (pipeline.handleRunnerDeath(runner, outcome)) onRunnerDied(outcome);
      onProgress();
    });
  }

  take(reader: number, own?: Own): SplitItem {
    return this.#ready.take(reader, own);
  }

  /** Notes that the reader wants nothing more of the split. */
  pass(reader: number): void {
    this.#ready.pass(reader);
  }

  #came(outcome: RunnerOutcome): void {
    if (outcome.kind === "end") return this.#end();
    if (this.#toSkip > 0) {
      this.#toSkip--;
      return;
    }
    const place = this.#place();
    this.#produced++;
    if (outcome.kind === "error" && outcome.isFinal === true) this.ended = true;
    if (outcome.kind === "error") return this.#ready.push({ ...outcome, place });
    const element = this.#options.pipeline.payloadOf(outcome.frame);
    this.#ready.push({ kind: outcome.kind, element, place });
  }

  #end(): void {
    this.ended = true;
    // If a new runner has repeated fewer items than the old one had given, the reader sees that here.
    const place = { ...this.#place(), index: this.#produced - this.#toSkip };
    this.#ready.push({ kind: "split_end", place });
  }

  #place(): StreamPosition {
    return { sequence: this.sequence, split: this.#split.index, index: this.#produced };
  }
}
