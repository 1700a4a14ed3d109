/**
 * The context of an operator in a running pipeline: the host, the pacer, the random state, the splits
 * of the task, and the operator's instance in the graph.
 */
import { RandomStream } from "../core/philox.ts";
import { copyTree } from "../core/tree.ts";
import type { Knob, KnobParameter, KnobRange } from "./autotune/knob.ts";
import { budgetsOf } from "./autotune/options.ts";
import { Tuner, type TunerOptions } from "./autotune/tuner.ts";
import type { BatchMemory } from "./elements/batch_rows.ts";
import { byteStringCopier } from "./elements/components.ts";
import { keepMemory } from "./elements/released.ts";
import { ForeignHost, hasForeignFunction, isForeign } from "./foreign/foreign.ts";
import type { ForeignRunner } from "./foreign/foreign_runners.ts";
import type { Host } from "./host.ts";
import type { Delegation, RandomState, RootOptions, Settings } from "./iteration_options.ts";
import type { ElementIterator } from "./iterator.ts";
import { LastReaders } from "./service/last_readers.ts";
import { lazyFactory } from "./iterators/lazy_iterator.ts";
import { type Changeable, type DatasetNode, inPreOrder } from "./node.ts";
import { seedOf } from "./operators/options.ts";
import { leftOutBy } from "./optimizer/no_op.ts";
import { type RuleName, type Rules, rulesOf } from "./optimizer/options.ts";
import { Pacer } from "./iterators/pacer.ts";
import { Pause } from "./checkpoint/pause.ts";
import {
  awaitedOf,
  decisiveSources,
  instancesOf,
  measuredOf,
  type OperatorInstance,
  type PartStats,
  statsOf,
} from "./operator_instances.ts";
import { KeptSplits, SplitProgress, SplitReader, type SplitSource } from "./sharding/splits.ts";
import { type IteratorStats, OperatorMeter } from "./iterators/stats.ts";
import { Cores } from "./threads/cores.ts";
import type { CallContext } from "./udf/call.ts";

interface Iteration {
  readonly host: Host;
  readonly options: RootOptions;
  /** The host of foreign operators; made on demand. */
  foreignHost?: ForeignHost;
  /** The process that runs foreign functions; started for the first of them. */
  readonly foreign: { runner?: ForeignRunner | undefined };
  /** Whether an iteration that contains this one owns `foreign`, and closes it. */
  readonly isWithin: boolean;
  readonly pacer: Pacer;
  readonly tuner: Tuner;
  readonly cores: Cores;
  readonly pause: Pause;
  readonly deterministic: boolean;
  readonly rules: Rules;
  /** During a restore: functions that undo what it has overwritten. */
  readonly overwritten: (() => void)[];
  readonly lastReaders: LastReaders;
  /** See `IteratorContext.loadedCaptures`. */
  readonly loadedCaptures: WeakSet<object>;
  /** See `IteratorContext.sharedFor()`. */
  readonly sharedFor: WeakMap<object, unknown>;
  /** See `IteratorContext.replace()`. */
  readonly replaced: Map<DatasetNode, (context: IteratorContext) => ElementIterator>;
  /** See `IteratorContext.sharedReads`. */
  sharedReads: number;
  /** An operator that a rule has added after the last one. */
  added?: OperatorInstance;
  /** See `IteratorContext.isDisposed`. */
  isDisposed: boolean;
}

const UNTUNED: TunerOptions = { budgets: budgetsOf(undefined), isOff: true };

const foreignIterator = lazyFactory(async () => {
  const { foreignIterator } = await import("./foreign/foreign_iterator.ts");
  return foreignIterator;
});

/** What the contexts of one iteration differ in. */
interface Position {
  readonly randomState: RandomState;
  readonly instance: OperatorInstance;
  readonly splits: SplitProgress | undefined;
}

/** Passed to `makeIterator`: all that an operator's iterator may know of its environment. */
export class IteratorContext {
  readonly randomState: RandomState;
  readonly stats: OperatorMeter;
  readonly #iteration: Iteration;
  readonly #instance: OperatorInstance;
  readonly #splits: SplitProgress | undefined;
  /** Copies the byte strings of this operator's elements; made on demand. */
  #ownBytes: ((element: unknown) => unknown) | undefined;
  /** The host for this operator. For a foreign operator it runs no code and opens no files. */
  readonly host: Host;

  private constructor(iteration: Iteration, { randomState, instance, splits }: Position) {
    this.randomState = randomState;
    this.stats = instance.stats;
    this.#iteration = iteration;
    this.#instance = instance;
    this.#splits = splits;
    const { host } = iteration;
    const isConfined = isForeign(instance.node) && host.runsForeign !== true;
    this.host = isConfined ? iteration.foreignHost ??= new ForeignHost(host) : host;
  }

  /** The context of a graph's last operator. */
  static root(
    node: DatasetNode,
    host: Host,
    options: RootOptions,
  ): IteratorContext {
    const { randomState, deterministic, tuning, rules, splits, lastReaders, within } = options;
    const { first, needsOrder, isReadOnly } = options;
    const changeable = isReadOnly ? "nothing" : "all";
    const instance = instancesOf(node, { first, needsOrder, changeable });
    const iteration: Iteration = {
      host,
      options,
      foreign: within === undefined ? {} : within.#iteration.foreign,
      isWithin: within !== undefined,
      pacer: new Pacer(host),
      tuner: new Tuner(host, tuning ?? UNTUNED, () => measuredOf(iteration.added ?? instance)),
      cores: new Cores(node, host, options),
      pause: new Pause(),
      deterministic,
      rules: rules ?? rulesOf(undefined),
      overwritten: [],
      lastReaders: new LastReaders(lastReaders),
      loadedCaptures: within?.loadedCaptures ?? new WeakSet(),
      sharedFor: within === undefined ? new WeakMap() : within.#iteration.sharedFor,
      replaced: new Map(),
      sharedReads: 0,
      isDisposed: false,
    };
    const progress = splits === undefined ? undefined : new SplitProgress(splits);
    return new IteratorContext(iteration, { randomState, instance, splits: progress });
  }

  /** A context of the same iteration that differs in `changes`. */
  #with(changes: Partial<Position>): IteratorContext {
    const own = { randomState: this.randomState, instance: this.#instance, splits: this.#splits };
    return new IteratorContext(this.#iteration, { ...own, ...changes });
  }

  get pacer(): Pacer {
    return this.#iteration.pacer;
  }

  get tuner(): Tuner {
    return this.#iteration.tuner;
  }

  /**
   * The knob of this operator, which all of its iterators share. In datasets that functions make it
   * is a constant, because there may be any number of these datasets.
   */
  knob(parameter: KnobParameter, range: KnobRange): Knob {
    if (this.stats.isNested) return this.tuner.constant(parameter, range);
    return this.#instance.knob ??= this.tuner.knob(parameter, range, this.#instance.node);
  }

  /** The memory for batches that several iterations share, if they share any. */
  get batchMemory(): BatchMemory | undefined {
    return this.#iteration.options.batchMemory;
  }

  /** Settings for a part of this iteration that runs as an iteration of its own. */
  get settings(): Settings {
    const { tuning, rules, threads, cores } = this.#iteration.options;
    return { tuning, rules, threads, cores };
  }

  /** The threads that may call functions. Foreign functions run in a process instead. */
  get cores(): Cores {
    return this.#iteration.cores;
  }

  /** The pause of background reading while the iteration is saved. */
  get pause(): Pause {
    return this.#iteration.pause;
  }

  /** Whether this operator keeps the order of elements unless it says otherwise. */
  get deterministic(): boolean {
    return this.#iteration.deterministic || this.keepsOrder;
  }

  /** Whether every process that runs the pipeline must get the same order. See `RootOptions`. */
  get needsOrder(): boolean {
    return this.#instance.needsOrder;
  }

  /** Whether datasets that this operator opens must keep their order, even if they say otherwise. */
  get keepsOrder(): boolean {
    return this.#instance.keepsOrder;
  }

  /** The operator's number in its graph: pre-order, from 0; settings are not counted. */
  get randomStateNumber(): number {
    return this.#instance.randomStateNumber;
  }

  makeIterator(): ElementIterator {
    const { node } = this.#instance;
    const replacement = this.#iteration.replaced.get(node);
    if (replacement !== undefined) return replacement(this);
    const leftOut = leftOutBy(node, this.#iteration.rules);
    if (leftOut !== undefined) return this.passInput().standsFor(leftOut);
    return hasForeignFunction(node, this.#iteration.host)
      ? foreignIterator(node, this)
      : node.makeIterator(this);
  }

  /**
   * Makes the iterators of `node` with `make` from now on. `node` and all operators below it then do
   * not run in this iteration.
   */
  replace(node: DatasetNode, make: (context: IteratorContext) => ElementIterator): void {
    this.#iteration.replaced.set(node, make);
  }

  /** Makes the iterator of this operator's input. */
  makeInput(index = 0): ElementIterator {
    return this.#with({ instance: this.#instance.inputs[index]! }).makeIterator();
  }

  /**
   * The context of an operator that a rule adds after this one, the graph's last. It has no number:
   * `stats()` does not show it, but the tuner knows it.
   */
  after(node: DatasetNode): IteratorContext {
    const below = this.#instance;
    const stats = new OperatorMeter(node.kind, -1);
    const instance = { ...below, node, stats, knob: undefined, inputs: [below] };
    this.#iteration.added = instance;
    return this.#with({ instance });
  }

  /** Whether the pipeline uses a rule of static optimisation. */
  uses(rule: RuleName): boolean {
    return this.#iteration.rules.has(rule);
  }

  /** Rule `projectionPushdown`: the fields of elements that are needed; undefined for all. */
  get wantedFields(): readonly string[] | undefined {
    return this.uses("projectionPushdown") ? this.#instance.wantedFields : undefined;
  }

  /** What others may change in place, or transfer, of the elements that this operator gives. */
  get changeable(): Changeable {
    return this.#instance.changeable;
  }

  /**
   * What to give of an element that this operator keeps: a copy of what others may change in place.
   * If they change nothing, they must not release its memory either.
   */
  given(kept: unknown): unknown {
    const { changeable } = this.#instance;
    if (changeable === "all") return copyTree(kept);
    if (changeable === "bytes") return this.givenBytes(kept);
    keepMemory(kept);
    return kept;
  }

  /** Like `given`, for an operator that copies the numbers of the element itself. */
  givenBytes(kept: unknown): unknown {
    const { changeable, node } = this.#instance;
    if (changeable === "nothing") return kept;
    return (this.#ownBytes ??= byteStringCopier(node))(kept);
  }

  /** What the instances of a graph that stands at this operator's place have in common with it. */
  get #place(): Pick<OperatorInstance, "needsOrder" | "keepsOrder" | "changeable"> {
    const { needsOrder, keepsOrder, changeable } = this.#instance;
    return { needsOrder, keepsOrder, changeable };
  }

  /** Makes the input's iterator, to be used as this operator's own: its elements count for both. */
  passInput(): ElementIterator {
    this.#instance.isPassed = true;
    return this.makeInput();
  }

  /** Waits for an input, and measures the time; `input`: its number, if the input counts it, too. */
  async waitFor<T>(pending: Promise<T>, input?: number): Promise<T> {
    const { host } = this;
    const startedAtMs = host.nowMs();
    try {
      return await pending;
    } finally {
      const ms = host.nowMs() - startedAtMs;
      this.stats.waited(ms);
      if (input !== undefined) this.awaited(input, ms);
    }
  }

  /** Counts at an input for how long this operator has waited for it. */
  awaited(input: number, ms: number): void {
    this.#instance.inputs[input]?.stats.awaited(ms);
  }

  /** The context of the same operator in a repetition by an operator above. */
  repeated(repetition: number): IteratorContext {
    const epoch = epochOfRepetition(this.randomState.epoch, repetition);
    return this.#with({ randomState: { ...this.randomState, epoch } });
  }

  /** The number of the dataset's iterator: the epoch, before any repetition by an operator above. */
  get iterator(): number {
    return this.#iteration.options.randomState.epoch;
  }

  /**
   * The seed that `withOptions` sets for `node` if it runs apart from this iteration, as on a service:
   * the last one after this operator, else that of `node`, else that of the whole pipeline.
   */
  chosenSeedOf(node: DatasetNode): bigint | undefined {
    return this.#instance.seedAfter ?? seedOf(node) ?? this.randomState.chosenSeed;
  }

  /** The random stream of this operator in an epoch and split. */
  randomStream(epoch = this.randomState.epoch): RandomStream {
    const { root, split } = this.randomState;
    const { randomStateNumber: number } = this;
    // A number that labels a stream is at least 0.
    return new RandomStream(root(), [number < 0 ? String(number) : number, epoch, split]);
  }

  /** The random stream of this operator's functions; another for each task with other elements. */
  callStream(): RandomStream {
    const { task = 0 } = this.randomState;
    return task === 0 ? this.randomStream() : this.randomStream().fork(`task ${task}`);
  }

  /** The context of a function that gets the elements of this operator, the graph's last. */
  ofConsumer(operator: string): CallContext {
    return {
      host: this.host,
      stats: new OperatorMeter(operator, -1),
      callStream: () => this.callStream().fork(`${operator}()`),
    };
  }

  /**
   * The random stream of an operator with a seed of its own: two operators with the same seed draw the
   * same numbers. Pass epoch 0 to draw the same numbers in every repetition.
   */
  seededStream(seed: bigint, epoch: number): RandomStream {
    const { salt, split } = this.randomState;
    return new RandomStream(seed, [String(salt), epoch, split]);
  }

  /**
   * A context of this operator without splits, and with the random state that all splits have in
   * common.
   */
  unsplit(): IteratorContext {
    return this.#with({ randomState: { ...this.randomState, split: 0 }, splits: undefined });
  }

  /** A context of this operator in which the sources below it read `splits`, not the task's. */
  withSplits(splits: SplitSource): IteratorContext {
    return this.#with({ splits: new SplitProgress(splits) });
  }

  /**
   * For an operator whose input is read by splits: makes a context for each pass over the input. Every
   * pass reads the splits of the first one, and draws the same random numbers.
   */
  likePasses(): (() => IteratorContext) | undefined {
    if (this.#splits === undefined) return undefined;
    const { source, readers } = this.#splits;
    const kept = new KeptSplits(source);
    return () => this.#with({ splits: new SplitProgress(kept.pass(), readers) });
  }

  /**
   * The context of a dataset that a user function made; it has its own random state and no splits.
   * The random state is derived from the call even if the user set no seed, because a restored
   * iterator repeats the call, maybe in another process, where a newly drawn seed would differ.
   */
  nested(node: DatasetNode, root: () => RandomStream): IteratorContext {
    const { salt, chosenSeed } = this.randomState;
    const randomState = { root, seeded: true, chosenSeed, salt, epoch: 0, split: 0 };
    const instance = instancesOf(node, { ...this.#place, opener: this.stats });
    return this.#with({ randomState, instance, splits: undefined });
  }

  /**
   * The context of a graph that runs in place of this operator, in the same epoch, with random numbers
   * from `root`. The order of its elements is needed.
   *
   * @param number The number of the graph's last operator, for figures and errors.
   */
  instead(node: DatasetNode, root: RandomStream, number: number): IteratorContext {
    const chosenSeed = seedOf(node);
    const own = { root: () => root, seeded: true, chosenSeed, salt: 0n };
    const randomState = { ...this.randomState, ...own };
    const first = { number, randomStateNumber: 0 };
    const options = {
      ...this.#place,
      opener: this.stats,
      needsOrder: true,
      keepsOrder: true,
      first,
    };
    const stats = new OperatorMeter(node.kind, number, this.stats, this.stats.isNested);
    const instance = { ...instancesOf(node, options), stats };
    return this.#with({ randomState, instance, splits: undefined });
  }

  /**
   * For source iterators: the splits to read instead of the whole source, or `undefined` when the
   * source is read whole. Each call begins one more repetition of the source.
   */
  openSplits(): SplitReader | undefined {
    const index = this.#instance.sourceIndex;
    if (this.#splits === undefined || index === undefined) return undefined;
    const { source, repetitions, readers } = this.#splits;
    const repetition = repetitions[index] ?? 0;
    repetitions[index] = repetition + 1;
    return readers[index] = new SplitReader(source, index, repetition);
  }

  /** Whether this iteration reads splits, or runs on one of them: it sees only a part of the sources. */
  get readsSplits(): boolean {
    return this.#splits !== undefined || this.randomState.split !== 0;
  }

  /** During a restore: registers how to undo a change to state that outlives the iteration. */
  overwrites(putBack: () => void): void {
    this.#iteration.overwritten.push(putBack);
  }

  /** Ends a restore. If it failed, undoes the changes that `overwrites()` registered. */
  endRestoring(isRestored: boolean): void {
    const overwritten = this.#iteration.overwritten.splice(0);
    if (isRestored) {
      this.#iteration.lastReaders.restored();
      return;
    }
    for (const putBack of overwritten.toReversed()) putBack();
  }

  /**
   * Captures in which nothing has to be loaded. Datasets that functions make capture the same ones
   * again and again. The next iteration begins anew: a program may change captures before it.
   */
  get loadedCaptures(): WeakSet<object> {
    return this.#iteration.loadedCaptures;
  }

  /** The identities under which this iteration has read streams of services. */
  get lastReaders(): LastReaders {
    return this.#iteration.lastReaders;
  }

  /** What is needed to run this operator and all below it in another process or thread. */
  get delegation(): Delegation {
    const { host, foreign, options } = this.#iteration;
    return {
      ...{ host, deterministic: this.deterministic, options, instance: this.#instance },
      start: () => foreign.runner ??= host.foreignRunners!.start(),
      contextOf: (instance, epoch) =>
        this.#with({ randomState: { ...this.randomState, epoch }, instance, splits: undefined }),
    };
  }

  /** Whether the operator and all below it may run on another thread. */
  get mayRunElsewhere(): boolean {
    const { replaced, cores } = this.#iteration;
    return cores.own !== undefined && !this.stats.isNested && !this.readsSplits &&
      replaced.size === 0;
  }

  /**
   * Closes the iteration's process for foreign functions. The promise resolves when it has exited.
   */
  close(): Promise<void> | undefined {
    const { foreign, isWithin } = this.#iteration;
    if (isWithin) return undefined;
    const closing = foreign.runner?.close();
    foreign.runner = undefined;
    return closing;
  }

  /** Whether the whole iteration is disposed: no operator makes another iterator. */
  get isDisposed(): boolean {
    return this.#iteration.isDisposed;
  }

  /** Call it before the iterators of the iteration are disposed. */
  noteDisposed(): void {
    this.#iteration.isDisposed = true;
  }

  /** How many times this iteration has read a stream of which other consumers got elements. */
  get sharedReads(): number {
    return this.#iteration.sharedReads;
  }

  /** State that all iterators of this operator share during this iteration. The first call makes it. */
  shared<T>(make: () => T): T {
    return (this.#instance.shared ??= make()) as T;
  }

  /**
   * State for an object that all operators share during this iteration, also those of datasets that
   * functions make. The first call makes it.
   */
  sharedFor<T>(key: object, make: () => T): T {
    return this.#iteration.sharedFor.getOrInsertComputed(key, make) as T;
  }

  /**
   * Notes that other consumers got elements of a stream. So the stream is not empty, even if this
   * iteration got nothing.
   */
  noteOtherConsumers(): void {
    this.#iteration.sharedReads++;
  }

  /**
   * Whether the last repetition saw the whole input: false if other tasks were assigned splits of a
   * source below, or other consumers got elements. A repetition of what a cache gives saw the same as
   * every later one will, unless the cache has elements and an operator after it may vary.
   *
   * @param sharedReads What `sharedReads` was when the repetition began.
   */
  async sawWholeInput(sharedReads: number): Promise<boolean> {
    if (this.#iteration.sharedReads > sharedReads) return false;
    if (this.#splits === undefined) return true;
    const { readers } = this.#splits;
    for (const index of decisiveSources(this.#instance)) {
      const reader = readers[index];
      if (reader !== undefined && !(await reader.sawWholeTable())) return false;
    }
    return true;
  }

  /**
   * What counts this operator and all below it, if other iterations run them. The first call makes it.
   *
   * @param make Gets the operators, in pre-order.
   */
  partStats<T extends PartStats>(make: (nodes: readonly DatasetNode[]) => T): T {
    const instance = this.#instance;
    return (instance.partStats ??= make(inPreOrder(instance.node))) as T;
  }

  /** Whether a part is replaced: others may prepare its elements. */
  get isReplaced(): boolean {
    return this.#iteration.replaced.size > 0;
  }

  /** The figures of this operator and all below it. */
  collectStats(): IteratorStats {
    return statsOf(this.#instance, this.tuner);
  }

  /** For how long other operators have waited for each operator, where they count it; in pre-order. */
  collectAwaited(): number[] {
    return awaitedOf(this.#instance);
  }
}

/**
 * In epoch 0, the repetition's number. Later epochs mix in theirs, so that random numbers differ.
 */
function epochOfRepetition(epoch: number, repetition: number): number {
  if (epoch === 0) return repetition;
  return (Math.imul(epoch, 0x9e3779b1) + repetition) >>> 0;
}
