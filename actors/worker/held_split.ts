/**
 * A split that an ordered task produces: what came of it and was not fetched yet.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { Payload } from "../../transport/payload.ts";
import type { ActorContext } from "../runtime/actor.ts";
import type { Own, Place } from "./protocol.ts";
import type { OnlySplit, Runner, RunnerOutcome } from "./runner.ts";
import { type SplitItem, SplitItems } from "./split_items.ts";
import type { TaskPipeline } from "./task_pipeline.ts";

/** Produced ahead of any request: consumers read in turn, and others' splits are to be there by then. */
const AHEAD_ELEMENTS_MAX = 2;
const AHEAD_FOR_CONSUMERS_MAX = 256;
/** Steps asked of the runner at a time: it takes the next while the one before is on its way here. */
const PULLING_MAX = 2;

/** What was handed out by the dispatcher. */
export type AssignedSplit = Omit<OnlySplit, "grant"> & { readonly sequence: number };

/** What a held split tells its task. */
export interface HeldSplitOptions {
  readonly context: ActorContext;
  /** See `OnlySplit`. */
  readonly grant: number;
  /** How many read the split. */
  readonly readers: number;
  /** Bytes produced ahead of any request beyond which nothing more is asked of the runner. */
  readonly aheadBytesMax: number;
  readonly pipeline: TaskPipeline;
  /** Something has become ready, or the split has been produced whole. */
  readonly onProgress: () => void;
  /** The pipeline's runner has died while it ran the split. */
  readonly onRunnerDied: (error: LeatError) => void;
}

export class HeldSplit {
  readonly #split: AssignedSplit;
  readonly #options: HeldSplitOptions;
  readonly #ready: SplitItems;
  #runner: Runner | undefined;
  #pulling = 0;
  #produced = 0;
  /** What a runner that began the split again has still to give once more. */
  #known = 0;
  /** Everything was produced, or all that can be; some of it may wait to be fetched. */
  ended = false;

  constructor(split: AssignedSplit, options: HeldSplitOptions) {
    this.#split = split;
    this.#options = options;
    this.#ready = new SplitItems(options.readers);
  }

  get sequence(): number {
    return this.#split.sequence;
  }

  /** Whether something of it is ready for that reader. */
  hasReadyFor(reader: number): boolean {
    return this.#ready.hasFor(reader);
  }

  get isSpent(): boolean {
    return this.ended && this.#ready.length === 0;
  }

  get readyBytes(): number {
    return this.#ready.bytes;
  }

  /** Elements that were produced, those that failed included. */
  get produced(): number {
    return this.#produced;
  }

  /** Goes on producing where there is room: for so many who wait, and a few beyond. */
  pump(waiting: number): void {
    const { readers, aheadBytesMax, pipeline, context: { world } } = this.#options;
    const runner = pipeline.runner ?? pipeline.start();
    if (runner !== this.#runner) {
      this.#runner = runner;
      this.#pulling = 0;
      // It gives the same as the one before, and what that gave is passed over.
      this.#known = this.#produced;
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
      // What comes of a runner that is gone (not even that it ends), or of steps beyond the end, is nothing.
      if (this.ended || runner !== pipeline.runner) return;
      this.#pulling--;
      if (!(outcome instanceof LeatError)) this.#came(outcome);
      else if (pipeline.died(runner, outcome)) onRunnerDied(outcome);
      onProgress();
    });
  }

  take(reader: number, own?: Own): SplitItem {
    return this.#ready.take(reader, own);
  }

  /** A reader wants nothing of it, or nothing more. */
  pass(reader: number): void {
    this.#ready.pass(reader);
  }

  #came(outcome: RunnerOutcome): void {
    if (outcome.kind === "end") return this.#end();
    if (this.#known > 0) {
      this.#known--;
      return;
    }
    const place = this.#place();
    this.#produced++;
    if (outcome.kind === "error" && outcome.isFinal === true) this.ended = true;
    this.#ready.push(
      outcome.kind === "error"
        ? { ...outcome, place }
        : { kind: outcome.kind, element: new Payload(outcome.frame, { isAlone: true }), place },
    );
  }

  #end(): void {
    this.ended = true;
    this.#ready.push({ kind: "split_end", place: this.#place() });
  }

  #place(): Place {
    return { sequence: this.sequence, split: this.#split.index, index: this.#produced };
  }
}
