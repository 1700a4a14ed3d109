/**
 * A task of a DETERMINISTIC job: produces its splits one by one, in the order of the stream. Each item
 * has its position. The task holds a few splits, and may hold a spare one: a split that another
 * task lost. It precedes all others of this task, so the reader waits for it.
 */
import { LeatError } from "../../../core/error.ts";
import type { Actor, ActorContext } from "../../runtime/actor.ts";
import { type ReaderId, readerId, releaseArrived, Repeats } from "../../exactly_once/repeats.ts";
import { HeldSplit } from "./held_split.ts";
import type { RequestOf } from "../../runtime/protocol.ts";
import type { Ref } from "../../runtime/ref.ts";
import type {
  ElementAnswer,
  ElementGiverProtocol,
  ElementReaderProtocol,
  ElementSourceProtocol,
  GetElementRequest,
  Own,
  TaskStats,
} from "../protocol.ts";
import { type RunningTask, taskActor, type TaskOptions, type TaskProtocol } from "./task.ts";
import { TASK_FENCED } from "../runner/runner.ts";
import { RunnerDeaths } from "../runner/runner_deaths.ts";
import { TaskPipeline } from "./task_pipeline.ts";
import { TaskSplits } from "./task_splits.ts";

/** Splits held besides the spare one: while one is produced, the next is already there. */
const HELD_MAX = 2;

export function createOrderedTask(
  context: ActorContext<TaskProtocol>,
  options: TaskOptions,
): Actor<TaskProtocol> {
  return taskActor(new OrderedTask(context, options));
}

/** What a request wants. */
interface Wish {
  /** The reader: a consumer's index, or 0. */
  readonly reader: number;
  /** No split after this one is wanted. */
  readonly upTo: number;
  readonly own: Own | undefined;
}

interface Waiting {
  readonly reader: ReaderId;
  readonly wish: Wish;
  readonly answer: PromiseWithResolvers<ElementAnswer>;
}

class OrderedTask implements RunningTask {
  readonly #context: ActorContext;
  readonly #options: TaskOptions;
  readonly #repeats: Repeats;
  readonly #splits: TaskSplits;
  readonly #pipeline: TaskPipeline;
  readonly #deaths: RunnerDeaths;
  /** Whether the runner died, and the dispatcher has not yet said if another may start. */
  #isHeldBack = false;
  /** Whether nothing is produced until readers acknowledge what they were given. */
  #isAtLimit = false;
  /** How many readers the task has. Each reads all elements, or only its own. */
  readonly #readers: number;
  /** Per reader, the first split of which it still wants elements. */
  readonly #wantedFrom: number[];
  /** The splits that the task holds, in the order of the stream. */
  #held: HeldSplit[] = [];
  #waiting: Waiting[] = [];
  #grants = 0;
  #asking = false;
  #askingSpare = false;
  /** Whether the task gets no more splits. */
  #noMore = false;
  #ended = false;
  #drained: PromiseWithResolvers<boolean> | undefined;
  #produced = 0;

  constructor(context: ActorContext, options: TaskOptions) {
    this.#context = context;
    const { definition, runners } = options;
    this.#options = options;
    this.#readers = definition.parameters.numConsumers ?? 1;
    this.#wantedFrom = Array<number>(this.#readers).fill(0);
    this.#repeats = new Repeats(context.world, {
      // Nothing produces a single item of a split again, so the reader would wait for ever.
      refusesLost: true,
      // Several readers take the same elements.
      ...(this.#readers === 1 ? { onArrived: releaseArrived } : {}),
      onEnded: (reader, why) => {
        const left = this.#waiting.filter((waiting) => waiting.reader === reader);
        this.#waiting = this.#waiting.filter((waiting) => waiting.reader !== reader);
        for (const { answer } of left) answer.reject(why);
      },
    });
    this.#splits = new TaskSplits(context, definition, options);
    this.#deaths = new RunnerDeaths({ context, ...options });
    this.#pipeline = new TaskPipeline({
      context,
      definition,
      runners,
      // An element shared by several readers must not be transferred to one of them.
      settings: { epoch: definition.repetition, splits: false, shared: this.#readers > 1 },
      splits: (isCurrent) => this.#splits.forRunner(isCurrent),
    });
  }

  start(): void {
    this.#progress();
  }

  stop(): void {
    this.#pipeline.retire();
    if (this.#waiting.length === 0) return;
    const gone = new LeatError("not_found", `Task ${this.#options.definition.taskId} has ended`);
    for (const { answer } of this.#waiting) answer.reject(gone);
    this.#waiting = [];
  }

  /** Always true: its worker keeps a task that has completed. */
  drain(): Promise<boolean> {
    this.#drained ??= Promise.withResolvers<boolean>();
    this.#splits.close();
    this.#noMore = true;
    if (this.#ended) this.#drained.resolve(true);
    else this.#progress();
    return this.#drained.promise;
  }

  getElement(
    request: GetElementRequest,
    asker: Ref<ElementReaderProtocol>,
  ): ElementAnswer | Promise<ElementAnswer> {
    this.#pipeline.noteAsked();
    this.#pipeline.noteBandwidth(request.bandwidth);
    this.#splits.readBy(asker as Ref as Ref<ElementGiverProtocol>);
    try {
      return this.#repeats.answer(request, () => this.#take(request, asker), asker);
    } finally {
      if (this.#isAtLimit && !this.#repeats.isAtLimit) this.#progress();
    }
  }

  /** Drops the elements that all other consumers have taken. */
  leave(
    { clientId, consumers = [] }: RequestOf<ElementSourceProtocol, "leave">,
    asker: Ref,
  ): void {
    this.#repeats.leave(readerId(asker, clientId));
    for (const consumerIndex of consumers) this.#pass(consumerIndex, Infinity);
    this.#progress();
  }

  stats(): TaskStats {
    const sum = (figure: (held: HeldSplit) => number) =>
      this.#held.reduce((total, held) => total + figure(held), 0);
    return this.#pipeline.stats({
      produced: this.#produced + sum((held) => held.produced),
      bufferedBytes: sum((held) => held.readyBytes),
      waiting: this.#waiting.length,
    });
  }

  #take(
    request: GetElementRequest,
    asker: Ref<ElementReaderProtocol>,
  ): ElementAnswer | Promise<ElementAnswer> {
    const { clientId, upTo = Infinity, own } = request;
    const wish = { reader: this.#readerOf(request), upTo, own };
    if (own !== undefined) this.#pass(wish.reader, own.sequence);
    const now = this.#answerTo(wish);
    if (now !== undefined) {
      this.#progress();
      return now;
    }
    const answer = Promise.withResolvers<ElementAnswer>();
    this.#waiting.push({ reader: readerId(asker as Ref, clientId), wish, answer });
    this.#progress();
    return answer.promise;
  }

  #readerOf({ consumerIndex: index = 0 }: GetElementRequest): number {
    if (Number.isInteger(index) && index >= 0 && index < this.#readers) return index;
    throw new LeatError(
      "invalid_argument",
      `Consumer index ${index} is out of range: the job has ${this.#readers} consumers`,
    );
  }

  /** Notes that the reader wants nothing of the splits before `sequence`. */
  #pass(reader: number, sequence: number): void {
    if (!(sequence > (this.#wantedFrom[reader] ?? Infinity))) return;
    this.#wantedFrom[reader] = sequence;
    for (const held of this.#held) {
      if (held.sequence < sequence) held.pass(reader);
    }
    this.#dropSpent();
  }

  #dropSpent(): void {
    const spent = this.#held.filter((held) => held.isSpent);
    if (spent.length === 0) return;
    for (const { produced } of spent) this.#produced += produced;
    this.#held = this.#held.filter((held) => !held.isSpent);
  }

  /** The answer to a request, unless it has to wait. */
  #answerTo({ reader, upTo, own }: Wish): ElementAnswer | undefined {
    const ready = this.#held.find((held) => held.hasReadyFor(reader));
    if (ready !== undefined && ready.sequence <= upTo) {
      return this.#takeFrom(ready, reader, own?.sequence === ready.sequence ? own : undefined);
    }
    if (this.#ended) return { kind: "end" };
    if (ready === undefined) return undefined;
    // This task may still produce a wanted split; otherwise the reader asks other tasks.
    const { sequence: from } = this.#held.find((held) => held === ready || !held.ended)!;
    return from <= upTo ? undefined : { kind: "later", from };
  }

  #takeFrom(held: HeldSplit, reader: number, own: Own | undefined): ElementAnswer {
    const answer = held.take(reader, own);
    this.#pipeline.handOut(answer);
    this.#dropSpent();
    return answer;
  }

  /**
   * Serves waiting requests, keeps the first unfinished split running, and requests more splits.
   */
  #progress(): void {
    if (this.#ended) return;
    // All readers may have passed a split by the time it is produced.
    this.#dropSpent();
    this.#waiting = this.#waiting.filter(({ wish, answer }) => {
      const now = this.#answerTo(wish);
      if (now !== undefined) answer.resolve(now);
      return now === undefined;
    });
    const working = this.#held.find((held) => !held.ended);
    this.#isAtLimit = this.#repeats.isAtLimit;
    if (!this.#isHeldBack && !this.#isAtLimit) working?.pump(this.#waiting.length);
    if (!this.#noMore) this.#askForSplits();
    else if (this.#held.length === 0) this.#end();
  }

  #askForSplits(): void {
    const heldMax = this.#context.world.fault("ordered_task.hold_one") ? 1 : HELD_MAX;
    if (!this.#asking && this.#held.length < heldMax) {
      this.#asking = true;
      this.#context.run(async () => {
        await this.#ask(false);
        this.#asking = false;
        this.#progress();
      });
    }
    if (!this.#askingSpare && this.#held.length > 0) {
      this.#askingSpare = true;
      this.#context.run(async () => {
        await this.#ask(true);
        this.#askingSpare = false;
        this.#progress();
      });
    }
  }

  async #ask(spare: boolean): Promise<void> {
    try {
      const split = await this.#splits.nextOrdered(spare);
      // If this task has ended, the dispatcher will assign the split to another one.
      if (this.#ended) return;
      if (split === null) {
        this.#noMore = true;
        return;
      }
      const held = new HeldSplit(split, {
        context: this.#context,
        grant: ++this.#grants,
        readers: this.#readers,
        aheadBytesMax: this.#options.aheadBytesMax,
        pipeline: this.#pipeline,
        onProgress: () => this.#progress(),
        onRunnerDied: (error) => this.#runnerDied(error, split.sequence),
      });
      this.#held = [...this.#held, held].sort((a, b) => a.sequence - b.sequence);
      this.#wantedFrom.forEach((from, reader) => {
        if (held.sequence < from) held.pass(reader);
      });
    } catch (error) {
      this.#refused(LeatError.from(error));
    }
  }

  #runnerDied(error: LeatError, sequence: number): void {
    this.#isHeldBack = true;
    this.#context.run(async () => {
      const mayStart = await this.#deaths.mayStartAfter(error, sequence);
      this.#isHeldBack = false;
      if (this.#ended) return;
      // If the job has failed, the dispatcher tells readers why.
      if (mayStart) this.#progress();
      else this.#options.onFenced();
    });
  }

  /**
   * Handles a refused request for a split: the task has ended, or its splits could not be listed.
   * The dispatcher tells the reader.
   */
  #refused(error: LeatError): void {
    if (error.code === "cancelled") throw error;
    this.#noMore = true;
    if (error.details?.["reason"] === TASK_FENCED) {
      this.#held = [];
      if (this.#drained === undefined) this.#options.onFenced();
    } else {
      const { taskId } = this.#options.definition;
      this.#context.world.log("error", `Task ${taskId} gets no splits: ${error.message}`);
    }
  }

  #end(): void {
    this.#ended = true;
    this.#pipeline.retire();
    for (const { answer } of this.#waiting) answer.resolve({ kind: "end" });
    this.#waiting = [];
    this.#drained?.resolve(true);
    this.#options.onCompleted();
  }
}
