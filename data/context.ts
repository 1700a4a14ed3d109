/**
 * The context of a running pipeline: the host, the pacer, the random state, the splits of the task,
 * and the position of the operator whose iterator is being made.
 */
import { RandomStream } from "../core/philox.ts";
import { Knob, type KnobParameter, type KnobRange } from "./autotune/knob.ts";
import { budgetsOf } from "./autotune/options.ts";
import { Tuner, type TunerOptions } from "./autotune/tuner.ts";
import type { BatchMemory } from "./elements/batch_rows.ts";
import { ForeignHost, hasForeignFunction, isForeign } from "./foreign/foreign.ts";
import type { ForeignRunner } from "./foreign/foreign_runners.ts";
import type { Host } from "./host.ts";
import type { Elsewhere, RandomState, RootOptions } from "./iteration_options.ts";
import type { ElementIterator } from "./iterator.ts";
import { LastReaders } from "./service/last_readers.ts";
import { lateFactory } from "./iterators/late_iterator.ts";
import type { DatasetNode } from "./node.ts";
import { leftOutBy } from "./optimizer/no_op.ts";
import { type RuleName, type Rules, rulesOf } from "./optimizer/options.ts";
import { Pacer } from "./iterators/pacer.ts";
import { Pause } from "./checkpoint/pause.ts";
import { measuredOf, type Place, placesOf, sourceIndexesOf, statsOf } from "./places.ts";
import { SplitProgress, SplitReader, type SplitSource } from "./sharding/splits.ts";
import { type IteratorStats, OperatorMeter } from "./iterators/stats.ts";
import { Cores } from "./threads/cores.ts";

interface Iteration {
  readonly host: Host;
  readonly options: RootOptions;
  /** The host of operators that this program did not build; made on demand. */
  foreignHost?: ForeignHost;
  /** Where its foreign functions run, once one of them does. */
  readonly foreign: { runner?: ForeignRunner | undefined };
  /** Whether `foreign` belongs to another iteration, which ends it. */
  readonly isWithin: boolean;
  readonly pacer: Pacer;
  readonly tuner: Tuner;
  readonly cores: Cores;
  readonly pause: Pause;
  readonly deterministic: boolean;
  readonly rules: Rules;
  /** While it is restored: functions that undo what restoring has overwritten. */
  readonly overwritten: (() => void)[];
  readonly lastReaders: LastReaders;
  /** Iterators that run in place of those of some operators. */
  readonly replaced: Map<DatasetNode, (context: IteratorContext) => ElementIterator>;
  /** Whether other consumers were given elements of a stream of which this iteration has a share. */
  isShare: boolean;
  /** An operator that a rule has added after the last one. */
  added?: Place;
}

const UNTUNED: TunerOptions = { budgets: budgetsOf(undefined), isOff: true };

/** The code is loaded on demand. */
const foreignIterator = lateFactory(async () => {
  const { foreignIterator } = await import("./foreign/foreign_iterator.ts");
  return foreignIterator;
});

/** Passed to `makeIterator`: everything that an operator's iterator may know of its environment. */
export class IteratorContext {
  readonly randomState: RandomState;
  readonly stats: OperatorMeter;
  readonly #iteration: Iteration;
  readonly #place: Place;
  readonly #splits: SplitProgress | undefined;
  /** The host as far as this operator may use it: a foreign pipeline has no code and no files here. */
  readonly host: Host;

  private constructor(
    iteration: Iteration,
    randomState: RandomState,
    place: Place,
    splits: SplitProgress | undefined,
  ) {
    this.randomState = randomState;
    this.stats = place.stats;
    this.#iteration = iteration;
    this.#place = place;
    this.#splits = splits;
    const { host } = iteration;
    const isConfined = isForeign(place.node) && host.runsForeign !== true;
    this.host = isConfined ? iteration.foreignHost ??= new ForeignHost(host) : host;
  }

  /** The context of a graph's last operator. */
  static root(
    node: DatasetNode,
    host: Host,
    options: RootOptions,
  ): IteratorContext {
    const { randomState, deterministic, tuning, rules, splits, lastReaders, within } = options;
    const place = placesOf(node, undefined, options.first);
    const iteration: Iteration = {
      host,
      options,
      foreign: within === undefined ? {} : within.#iteration.foreign,
      isWithin: within !== undefined,
      pacer: new Pacer(host),
      tuner: new Tuner(host, tuning ?? UNTUNED, () => measuredOf(iteration.added ?? place)),
      cores: new Cores(node, host, options),
      pause: new Pause(),
      deterministic,
      rules: rules ?? rulesOf(undefined),
      overwritten: [],
      lastReaders: new LastReaders(lastReaders),
      replaced: new Map(),
      isShare: false,
    };
    const progress = splits === undefined ? undefined : new SplitProgress(splits);
    return new IteratorContext(iteration, randomState, place, progress);
  }

  get pacer(): Pacer {
    return this.#iteration.pacer;
  }

  get tuner(): Tuner {
    return this.#iteration.tuner;
  }

  /**
   * The knob of this operator, for all of its iterators. In datasets that functions make nothing is
   * tuned, because there may be any number of them.
   */
  knob(parameter: KnobParameter, range: KnobRange): Knob {
    if (this.stats.isNested) return new Knob(parameter, range);
    return this.#place.knob ??= this.tuner.knob(parameter, range, this.#place.node);
  }

  /** Where batches have their memory from, if several iterations share it. */
  get batchMemory(): BatchMemory | undefined {
    return this.#iteration.options.batchMemory;
  }

  /** The threads that may call functions. Functions of other programs run in their own process. */
  get cores(): Cores {
    return this.#iteration.cores;
  }

  /** Ends once the state of the iteration that is being saved is written. */
  get pause(): Pause {
    return this.#iteration.pause;
  }

  /** Whether this operator keeps the order of elements unless it says otherwise. */
  get deterministic(): boolean {
    return this.#iteration.deterministic;
  }

  /** The operator's number in its graph, without settings: pre-order, from 0. */
  get randomStateNumber(): number {
    return this.#place.randomStateNumber;
  }

  /** Makes the iterator of this operator itself. */
  makeIterator(): ElementIterator {
    const { node } = this.#place;
    const replacement = this.#iteration.replaced.get(node);
    if (replacement !== undefined) return replacement(this);
    const leftOut = leftOutBy(node, this.#iteration.rules);
    if (leftOut !== undefined) return this.passInput().standsFor(leftOut);
    return hasForeignFunction(node, this.#iteration.host)
      ? foreignIterator(node, this)
      : node.makeIterator(this);
  }

  /**
   * From now on `make` makes the iterators of an operator of this iteration, in place of the
   * operator and all below it.
   */
  replace(node: DatasetNode, make: (context: IteratorContext) => ElementIterator): void {
    this.#iteration.replaced.set(node, make);
  }

  /** Makes the iterator of this operator's input. */
  makeInput(index = 0): ElementIterator {
    const place = this.#place.inputs[index]!;
    return new IteratorContext(this.#iteration, this.randomState, place, this.#splits)
      .makeIterator();
  }

  /**
   * The context of an operator that a rule adds after the last one, which is this. It has no number: `stats()` does
   * not show it, but the tuner knows it.
   */
  after(node: DatasetNode): IteratorContext {
    const below = this.#place;
    const stats = new OperatorMeter(node.kind, -1);
    const place = { ...below, node, stats, knob: undefined, inputs: [below] };
    this.#iteration.added = place;
    return new IteratorContext(this.#iteration, this.randomState, place, this.#splits);
  }

  /** Whether the pipeline uses a rule of static optimisation. */
  uses(rule: RuleName): boolean {
    return this.#iteration.rules.has(rule);
  }

  /** The fields of elements that are needed, by rule `projectionPushdown`; undefined for all. */
  get wantedFields(): readonly string[] | undefined {
    return this.uses("projectionPushdown") ? this.#place.wantedFields : undefined;
  }

  /** The iterator of this operator's input in place of its own: its elements count for both. */
  passInput(): ElementIterator {
    this.#place.isPassed = true;
    return this.makeInput();
  }

  /** Waits for an input, and measures the time. */
  async waitFor<T>(pending: Promise<T>): Promise<T> {
    const { host } = this;
    const startedAtMs = host.nowMs();
    try {
      return await pending;
    } finally {
      this.stats.waited(host.nowMs() - startedAtMs);
    }
  }

  /** The same operator in repetition `repetition` of an operator above. */
  repeated(repetition: number): IteratorContext {
    const randomState = {
      ...this.randomState,
      epoch: epochOfRepetition(this.randomState.epoch, repetition),
    };
    return new IteratorContext(this.#iteration, randomState, this.#place, this.#splits);
  }

  /** The random stream of this operator in an epoch and split, derived by Philox from all of these. */
  randomStream(epoch = this.randomState.epoch): RandomStream {
    const { root, split } = this.randomState;
    return new RandomStream(root(), [this.randomStateNumber, epoch, split]);
  }

  /** The random stream of this operator's functions; it differs between tasks with different elements. */
  callStream(): RandomStream {
    const { task = 0 } = this.randomState;
    return task === 0 ? this.randomStream() : this.randomStream().fork(`task ${task}`);
  }

  /**
   * The random stream of an operator with a seed of its own: the same for two operators with the
   * same seed. Epoch 0 gives the same in every repetition.
   */
  seededStream(seed: bigint, epoch: number): RandomStream {
    const { salt, split } = this.randomState;
    return new RandomStream(seed, [String(salt), epoch, split]);
  }

  /** The same operator with the random state that all splits have in common, and without splits. */
  unsplit(): IteratorContext {
    return new IteratorContext(
      this.#iteration,
      { ...this.randomState, split: 0 },
      this.#place,
      undefined,
    );
  }

  /** The same operator, with these splits for the sources below it instead of the task's. */
  withSplits(splits: SplitSource): IteratorContext {
    return new IteratorContext(
      this.#iteration,
      this.randomState,
      this.#place,
      new SplitProgress(splits),
    );
  }

  /**
   * The context of a dataset that a user function made; it has its own random state and no splits.
   * The state is that of the call even without a user's seed: a restored iterator repeats calls in
   * its own process, where a newly drawn seed would differ.
   */
  nested(node: DatasetNode, root: () => RandomStream): IteratorContext {
    const { salt } = this.randomState;
    const randomState = { root, seeded: true, salt, epoch: 0, split: 0 };
    return new IteratorContext(this.#iteration, randomState, placesOf(node, this.stats), undefined);
  }

  /**
   * The context of a graph that runs in place of this operator, with the same epoch and this random
   * state. The elements of its last operator are this one's.
   */
  instead(node: DatasetNode, root: RandomStream): IteratorContext {
    const randomState = { ...this.randomState, root: () => root, seeded: true, salt: 0n };
    const place = { ...placesOf(node, this.stats), stats: this.stats };
    return new IteratorContext(this.#iteration, randomState, place, undefined);
  }

  /**
   * For source iterators: the splits to read instead of the whole source, or `undefined` when the
   * source is read whole. Each call stands for one more repetition of the source.
   */
  openSplits(): SplitReader | undefined {
    const index = this.#place.sourceIndex;
    if (this.#splits === undefined || index === undefined) return undefined;
    const { source, repetitions, readers } = this.#splits;
    const repetition = repetitions[index] ?? 0;
    repetitions[index] = repetition + 1;
    return readers[index] = new SplitReader(source, index, repetition);
  }

  /** Whether this task reads splits, or is one, and so sees only a part of the sources. */
  get readsSplits(): boolean {
    return this.#splits !== undefined || this.randomState.split !== 0;
  }

  /** Registers, during a restore, how to undo a change outside of the iteration's iterators. */
  overwrites(putBack: () => void): void {
    this.#iteration.overwritten.push(putBack);
  }

  /** The iteration is restored, or cannot be: then all such changes are undone. */
  endRestoring(isRestored: boolean): void {
    const overwritten = this.#iteration.overwritten.splice(0);
    if (isRestored) {
      this.#iteration.lastReaders.restored();
      return;
    }
    for (const putBack of overwritten.toReversed()) putBack();
  }

  /** The identities under which streams of services were read. */
  get lastReaders(): LastReaders {
    return this.#iteration.lastReaders;
  }

  /** What is needed to run this operator and all below it elsewhere. */
  get elsewhere(): Elsewhere {
    const { host, foreign, deterministic, options } = this.#iteration;
    return {
      ...{ host, deterministic, options, place: this.#place },
      start: () => foreign.runner ??= host.foreignRunners!.start(),
      contextOf: (place, epoch) =>
        new IteratorContext(this.#iteration, { ...this.randomState, epoch }, place, undefined),
    };
  }

  /** Whether the operator and all below it may run on another thread: nothing here takes part in them. */
  get mayRunElsewhere(): boolean {
    const { replaced, cores } = this.#iteration;
    return cores.own !== undefined && !this.stats.isNested && !this.readsSplits &&
      replaced.size === 0;
  }

  /** The iteration has ended. The promise, if any, resolves when its parts elsewhere have ended. */
  close(): Promise<void> | undefined {
    const { foreign, isWithin } = this.#iteration;
    if (isWithin) return undefined;
    const closing = foreign.runner?.close();
    foreign.runner = undefined;
    return closing;
  }

  /** Whether other consumers were given elements of a stream of which this iteration has a share. */
  get isShare(): boolean {
    return this.#iteration.isShare;
  }

  /** State that all iterators of this operator share during this iteration; made by the first. */
  shared<T>(make: () => T): T {
    return (this.#place.shared ??= make()) as T;
  }

  /** A shared stream had elements for other consumers: it is not empty, even if this share is. */
  notesShare(): void {
    this.#iteration.isShare = true;
  }

  /**
   * Whether the last repetition saw the whole input: false when other tasks were assigned a part of
   * some source below, or other consumers a share.
   */
  async sawWholeInput(): Promise<boolean> {
    if (this.#iteration.isShare) return false;
    if (this.#splits === undefined) return true;
    for (const index of sourceIndexesOf(this.#place)) {
      const reader = this.#splits.readers[index];
      if (reader === undefined || !(await reader.sawWholeTable())) return false;
    }
    return true;
  }

  /** The figures of this operator and all below it. */
  collectStats(): IteratorStats {
    return statsOf(this.#place, this.tuner);
  }
}

/** The repetition itself in the first epoch; distinct for repetitions in later ones. */
function epochOfRepetition(epoch: number, repetition: number): number {
  if (epoch === 0) return repetition;
  return (Math.imul(epoch, 0x9e3779b1) + repetition) >>> 0;
}
