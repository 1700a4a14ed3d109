/**
 * Reads a DETERMINISTIC job: puts elements into the order of the stream, and drops elements that
 * arrive again. Elements that are early wait in a buffer. While it is full, only the next split is
 * requested.
 */
import { LeatError } from "../../../core/error.ts";
import { Fifo } from "../../../core/fifo.ts";
import type { ReadFigures } from "../../dispatcher/protocol_figures.ts";
import type { OrderedReport } from "../../dispatcher/protocol_heartbeats.ts";
import type { Reported } from "../../dispatcher/protocol_metrics.ts";
import { isSourceGone, refusedAnswer } from "../../exactly_once/fetcher.ts";
import { bytesOfAnswer } from "../../exactly_once/kept_answers.ts";
import { UNACKNOWLEDGED_MAX } from "../../exactly_once/repeats.ts";
import { type ElementAnswer, type Own, SOME_CLIENT } from "../../worker/protocol.ts";
import { BlockedMeter } from "../blocked_meter.ts";
import { ArrivedSplit, isPlaced, type Passed, type Placed } from "./arrived_split.ts";
import { StreamNumbers } from "./numbering.ts";
import type { HeartbeatNews, Reader, ReaderDependencies, TaskChanges } from "./reader.ts";
import { OpenTask } from "./open_task.ts";
import { TaskFetcher } from "./task_fetcher.ts";

/** Default limit of the elements in the feed, which wait for the training loop. */
const READY_MAX = 16;
/**
 * Requests in flight to one task: at least two, because one is served while the next is on its way.
 * More for small elements: a task produces several while the training loop keeps this thread busy.
 */
const IN_FLIGHT_MIN = 2;
export const IN_FLIGHT_MAX = 16;
export const IN_FLIGHT_BYTES = 2 ** 20;
/** The factor by which `#largestBytes` shrinks with each element. */
const LARGEST_DECAY = 7 / 8;
/** While early items, with those in the feed, take this many bytes, the buffer is full. */
const EARLY_BUFFER_BYTES_MAX = 256 * 2 ** 20;
/** With this many items the buffer is full, too: small ones take more memory than bytes. */
export const EARLY_BUFFER_ITEMS_MAX = 2 ** 16;
/**
 * Limit of the items of one split that wait for an earlier item. One task sends at most
 * {@linkcode UNACKNOWLEDGED_MAX}; this is enough for four tasks that lose the split one after another.
 */
export const EARLY_ITEMS_MAX = 4 * UNACKNOWLEDGED_MAX;
/** Limit of the bytes of these items. */
const EARLY_BYTES_MAX = 2 ** 30;
/** When `#mark` has moved by this many splits, an early heartbeat reports it. */
const MARK_STEP_MAX = 64;
/**
 * The same step as a share of the splits that may be assigned beyond `#mark`. The smaller of the
 * two steps applies.
 */
const MARK_STEP_SHARE = 1 / 4;

/** Time limit for a task to hear which consumers have left, in ms. It is then told again. */
const LEAVE_TIMEOUT_MS = 30_000;

/** What a request asks for. */
interface WantedSplit {
  readonly upTo?: number;
  readonly own?: Own;
}

export class OrderedReader implements Reader {
  readonly #deps: ReaderDependencies;
  readonly #tasks = new Map<number, OpenTask>();
  readonly #splits = new Map<number, ArrivedSplit>();
  /** The split at which the stream resumes. */
  readonly #startAt: number;
  /** Earlier splits that are read again for the rows that they left over. */
  readonly #rereadSplits: readonly number[];
  /** Finds this consumer's own elements. Undefined if the reader gives all elements. */
  readonly #numbers: StreamNumbers | undefined;
  /** For each item in the feed, oldest first: whether it gives this consumer an element. */
  readonly #ownFed: boolean[] = [];
  #clientId = -1;
  /** Tasks that may be asked, in turn. A task that may not when its turn comes is dropped. */
  readonly #ring = new Fifo<OpenTask>();
  /** The split that is given next. */
  #head: number;
  /** All splits before this one have arrived whole. */
  #mark: number;
  #markReported: number;
  #markStep = MARK_STEP_MAX;
  #total = Infinity;
  /**
   * Whether the table of splits, to which positions refer, is known. Until then nothing is given:
   * the files may have changed since a position was saved.
   */
  #isTableKnown = false;
  #isTableAsked = false;
  #earlyBytes = 0;
  #earlyItems = 0;
  /** The size of the largest recent element: after a small one, a large one may follow. */
  #largestBytes = 0;
  /** Measures how long the training loop waits for the next element while later ones are here. */
  readonly #headOfLine: BlockedMeter;
  #bytesMax = 0;
  #openSplitsMax = 0;

  constructor(deps: ReaderDependencies) {
    this.#deps = deps;
    this.#headOfLine = new BlockedMeter(() => deps.context.world.nowMs());
    const { startAt = 0, behind = [], numbering } = deps.options.ordered ?? {};
    this.#numbers = numbering === undefined ? undefined : new StreamNumbers(numbering);
    this.#startAt = startAt;
    this.#rereadSplits = behind;
    this.#head = this.#mark = this.#markReported = behind[0] ?? startAt;
  }

  get inFlight(): number {
    return [...this.#tasks.values()].reduce((sum, { inFlight }) => sum + inFlight, 0);
  }

  get earlyBytes(): number {
    return this.#earlyBytes;
  }

  get orderFigures(): Reported<"order"> {
    return {
      headOfLineMs: this.#headOfLine.ms,
      bufferedBytesMax: this.#bytesMax,
      openSplitsMax: this.#openSplitsMax,
    };
  }

  get tasks(): Iterable<ReadFigures> {
    return this.#tasks.values().map(({ fetcher }) => fetcher.figures);
  }

  joined(clientId: number): void {
    this.#clientId = clientId;
  }

  report(): OrderedReport {
    this.#markReported = this.#mark;
    const done = [...this.#splits].filter(([sequence, { whole }]) =>
      whole && sequence > this.#mark
    );
    const sequences = done.map(([sequence]) => sequence).sort((a, b) => a - b);
    return { kind: "ordered", mark: this.#mark, done: sequences };
  }

  update(
    { news }: Pick<HeartbeatNews, "news">,
    { removed, added }: TaskChanges,
  ): void {
    if (news?.kind !== "ordered") return;
    const { windowSplits, table, left: departed } = news;
    this.#markStep = Math.max(1, Math.min(MARK_STEP_MAX, MARK_STEP_SHARE * windowSplits));
    for (const taskId of removed) {
      this.#tasks.get(taskId)?.fetcher.leave();
      this.#tasks.delete(taskId);
    }
    // Any task may be assigned the splits of those that are gone, so none pauses.
    if (removed.length > 0) { for (const open of this.#tasks.values()) open.endPause(); }
    for (const task of added) {
      const fetcher = new TaskFetcher(this.#deps, this.#clientId, task, {
        faultOf: (answer, wanted) => this.#faultOf(answer, wanted),
        onUnreachable() {},
      });
      const open = new OpenTask(task, fetcher);
      this.#tasks.set(task.taskId, open);
      this.#offer(open);
    }
    if (departed.length > 0) this.#sendDeparted(departed);
    if (table !== undefined && !this.#isTableKnown) {
      this.#isTableKnown = true;
      this.#checkTable(table.digest);
      this.#total = table.total;
    }
    this.pump();
  }

  pump(): void {
    this.#giveReady();
    const { feed } = this.#deps;
    this.#headOfLine.note(feed.isWaitedFor && this.#earlyItems > 0);
    const isFull = this.#isFull;
    // If the buffer is full, the training loop first takes what is in the feed. If the feed is
    // empty, the next split is missing, and is requested.
    if (feed.closed || (isFull && feed.length > 0)) return;
    // Which elements are a consumer's own is known only for the next split. So only that one is
    // requested.
    const isBounded = isFull || this.#numbers !== undefined;
    if (this.#numbers !== undefined && !this.#hasRoom) return;
    const wanted = this.#wanted(isBounded);
    const passedOver: OpenTask[] = [];
    for (let task = this.#ring.shift(); task !== undefined; task = this.#ring.shift()) {
      task.inRing = false;
      if (isBounded && task.lackedUpTo >= this.#head) passedOver.push(task);
      else if (this.#isAskable(task)) {
        this.#fetch(task, wanted);
        this.#offer(task);
      }
    }
    for (const task of passedOver) this.#offer(task);
  }

  /** Puts a task that can be asked into the ring. */
  #offer(task: OpenTask): void {
    if (task.inRing || !this.#isAskable(task)) return;
    task.inRing = true;
    this.#ring.push(task);
  }

  #isAskable(open: OpenTask): boolean {
    return !open.ended && open.inFlight < this.#inFlightMax &&
      this.#tasks.get(open.task.taskId) === open;
  }

  /** Limit of open requests to one task. With several consumers it is the minimum. */
  get #inFlightMax(): number {
    const { numConsumers } = this.#deps.options.parameters;
    const isConsumer = this.#numbers !== undefined || numConsumers !== undefined;
    if (isConsumer || this.#largestBytes === 0) return IN_FLIGHT_MIN;
    const fit = Math.floor(IN_FLIGHT_BYTES / this.#largestBytes);
    return Math.max(IN_FLIGHT_MIN, Math.min(IN_FLIGHT_MAX, fit));
  }

  stop(): void {
    for (const { fetcher } of this.#tasks.values()) fetcher.leave();
    this.#tasks.clear();
    this.#splits.clear();
    this.#earlyBytes = this.#earlyItems = 0;
  }

  get #lacksTasks(): boolean {
    return !this.#isTableKnown || [...this.#tasks.values()].every((task) => task.ended);
  }

  /** Whether no task has the next split, as far as this reader knows. */
  get #isHeadNowhere(): boolean {
    return this.#tasks.values().every((task) => task.ended || task.lackedUpTo >= this.#head);
  }

  get #isFull(): boolean {
    const { feed, options: { bufferBytesMax = EARLY_BUFFER_BYTES_MAX } } = this.#deps;
    return this.#earlyBytes + feed.bytes >= bufferBytesMax ||
      this.#earlyItems + feed.length >= EARLY_BUFFER_ITEMS_MAX;
  }

  /**
   * Whether the feed may get more items. A lone reader's feed has a limit of items. A consumer's
   * has a limit of its own elements. If it cannot tell which those are, only the limits of the
   * buffer apply. It must also receive the elements of the others, because a task keeps an element
   * until all consumers have passed it.
   */
  get #hasRoom(): boolean {
    const { feed, options } = this.#deps;
    const limit = options.maxOutstandingRequests ?? READY_MAX;
    if (this.#numbers !== undefined) {
      this.#ownFed.splice(0, this.#ownFed.length - feed.length);
      return this.#ownFed.filter(Boolean).length < limit;
    }
    return options.parameters.numConsumers !== undefined || feed.length < limit;
  }

  /**
   * Whether the next items get numbers. Splits before `#startAt`, read again, had theirs before.
   */
  get #isNumbered(): boolean {
    return this.#numbers !== undefined && this.#head >= this.#startAt;
  }

  #isOwn(number: number): boolean {
    const { parameters: { numConsumers = 1 }, consumerIndex = 0 } = this.#deps.options;
    return number % numConsumers === consumerIndex;
  }

  #wanted(isBounded: boolean): WantedSplit {
    return {
      ...(isBounded ? { upTo: this.#head } : {}),
      ...(this.#isNumbered ? { own: this.#numbers!.ownFrom(this.#head) } : {}),
    };
  }

  /** Moves the next items to the feed, as far as they have arrived and the feed has space. */
  #giveReady(): void {
    const { feed } = this.#deps;
    if (!this.#isTableKnown) return this.#askForTable();
    while (!feed.closed && this.#hasRoom) {
      if (this.#head >= this.#total) return feed.end();
      const split = this.#splits.get(this.#head);
      const item = split?.items.shift();
      if (item === undefined) return;
      this.#letGo(item);
      let counted: ReturnType<StreamNumbers["count"]> | undefined;
      try {
        counted = this.#isNumbered ? this.#numbers!.count(item) : undefined;
      } catch (error) {
        // Without the number of its rows, no later element has a number.
        return feed.fail(LeatError.from(error));
      }
      if (item.kind === "split_end") {
        this.#splits.delete(this.#head);
        this.#head = this.#after(this.#head);
      }
      if (item.kind === "passed") continue;
      if (this.#numbers !== undefined) {
        this.#ownFed.push(counted?.isElement === true && this.#isOwn(counted.number));
      }
      feed.push(counted === undefined ? item : { ...item, number: counted.number });
    }
  }

  /** Requests an early heartbeat, once, for the table. The regular heartbeats also bring it. */
  #askForTable(): void {
    if (this.#isTableAsked || this.#earlyItems === 0) return;
    this.#isTableAsked = true;
    this.#deps.refresh();
  }

  /** Tells each task which consumers have left since it was last told. */
  #sendDeparted(departed: readonly number[]): void {
    const { context } = this.#deps;
    for (const { task: { source }, toldLeft } of this.#tasks.values()) {
      const consumers = departed.filter((index) => !toldLeft.has(index));
      if (consumers.length === 0) continue;
      for (const index of consumers) toldLeft.add(index);
      context.run(async () => {
        try {
          const request = { clientId: SOME_CLIENT, consumers };
          await context.ask(source, "leave", request, { timeoutMs: LEAVE_TIMEOUT_MS });
        } catch {
          // The next heartbeat repeats it, unless the task has ended.
          for (const index of consumers) toldLeft.delete(index);
        }
      });
    }
  }

  #fetch(open: OpenTask, wanted: WantedSplit): void {
    open.inFlight++;
    this.#deps.context.run(async () => {
      const answer = await open.fetcher.fetch(wanted).catch(failedAnswer);
      open.inFlight--;
      this.#offer(open);
      this.#came(open, answer, wanted.upTo);
    });
  }

  #came(open: OpenTask, answer: ElementAnswer, upTo = this.#head): void {
    if (answer.kind !== "later") open.resetPause();
    if (isPlaced(answer)) this.#arrive(answer);
    else if (answer.kind === "error") this.#deps.feed.fail(LeatError.fromWire(answer.error));
    else if (answer.kind === "later") this.#pause(open, (answer.from ?? upTo + 1) - 1);
    else if (answer.kind === "end" && !open.ended) {
      open.ended = true;
      this.#deps.unread.ended(open.task);
      if (this.#lacksTasks) this.#deps.refresh();
    }
    this.pump();
  }

  /**
   * Pauses the requests to a task that lacks the next split. It gets that split only if another
   * task loses it.
   */
  #pause(open: OpenTask, lackedUpTo: number): void {
    open.lackedUpTo = lackedUpTo;
    // The dispatcher assigns a lost split only when it knows that this reader has all before it.
    if (this.#mark > this.#markReported && this.#isHeadNowhere) this.#reportMark();
    open.pause(this.#deps.context, () => this.pump());
  }

  /**
   * How an answer breaks the protocol; undefined if it does not. Without this check, a worker could
   * fill the memory.
   */
  #faultOf(answer: ElementAnswer, { upTo = Infinity, own }: WantedSplit): string | undefined {
    const { kind } = answer;
    if (kind === "later" && (answer.from ?? upTo + 1) <= upTo) {
      return `"later" as the answer to a request for splits up to ${upTo}`;
    }
    if (kind === "end" || kind === "later" || kind === "error" && !isPlaced(answer)) return;
    if (!isPlaced(answer)) return `"${kind}" without a position in the stream`;
    const { place: { sequence, index } } = answer;
    if (sequence > upTo) return `split ${sequence}, but only splits up to ${upTo} were requested`;
    if (sequence >= this.#total) return `split ${sequence} of a stream of ${this.#total} splits`;
    if (kind === "passed" && !this.#isOthers(answer, own)) {
      return `no elements from ${sequence}.${index} on, though this reader may need them`;
    }
    const { items = 0, bytes = 0 } = this.#splits.get(sequence)?.early ?? {};
    if (items < EARLY_ITEMS_MAX && bytes < EARLY_BYTES_MAX) return undefined;
    return `${items} items of split ${sequence}, but not the item before them`;
  }

  /** Whether a run of elements has none of this consumer. A worker may state any counts. */
  #isOthers({ place, count }: Passed, own: Own | undefined): boolean {
    if (own?.sequence !== place.sequence) return false;
    const { parameters: { numConsumers = 1 }, consumerIndex = 0 } = this.#deps.options;
    const first = (own.number % numConsumers + place.index % numConsumers) % numConsumers;
    const untilOwn = (consumerIndex - first + numConsumers) % numConsumers;
    return count > 0 && count <= untilOwn;
  }

  #arrive(answer: Placed): void {
    const { sequence } = answer.place;
    if (sequence < this.#head || !this.#isRead(sequence)) return;
    let split = this.#splits.get(sequence);
    if (split === undefined) {
      split = new ArrivedSplit();
      this.#splits.set(sequence, split);
    }
    if (split.contradicts(answer)) return this.#deps.feed.fail(producedDifferently(sequence));
    const dropped = split.add(answer);
    if (dropped === undefined) return;
    for (const item of dropped) this.#letGo(item);
    this.#earlyItems++;
    this.#earlyBytes += bytesOfAnswer(answer);
    if ("element" in answer) {
      const { byteLength } = answer.element;
      this.#largestBytes = Math.max(byteLength, LARGEST_DECAY * this.#largestBytes);
    }
    this.#bytesMax = Math.max(this.#bytesMax, this.#earlyBytes + this.#deps.feed.bytes);
    this.#openSplitsMax = Math.max(this.#openSplitsMax, sequence - this.#mark + 1);
    for (const item of split.settle()) this.#letGo(item);
    if (split.whole) this.#moveMark();
  }

  /** Stops counting an item: it no longer waits in this reader. */
  #letGo(item: Placed): void {
    this.#earlyItems--;
    this.#earlyBytes -= bytesOfAnswer(item);
  }

  #moveMark(): void {
    while (this.#mark < this.#head || this.#splits.get(this.#mark)?.whole === true) {
      this.#mark = this.#after(this.#mark);
    }
    if (this.#mark - this.#markReported >= this.#markStep) this.#reportMark();
  }

  #reportMark(): void {
    this.#markReported = this.#mark;
    this.#deps.refresh();
  }

  /** Whether this reader gives the split. A task may send others, which other consumers need. */
  #isRead(sequence: number): boolean {
    return sequence >= this.#startAt || this.#rereadSplits.includes(sequence);
  }

  /** The split to read after this one. Before `#startAt`, only `#rereadSplits` are read. */
  #after(sequence: number): number {
    const next = sequence + 1;
    if (next >= this.#startAt) return next;
    return this.#rereadSplits.find((at) => at >= next) ?? this.#startAt;
  }

  #checkTable(digest: string): void {
    const { expectedDigest, onTable } = this.#deps.options.ordered ?? {};
    // A position must keep the digest of the table that it refers to, so `onTable` learns no other.
    if (expectedDigest === undefined || expectedDigest === digest) return onTable?.(digest);
    this.#deps.feed.fail(
      new LeatError(
        "failed_precondition",
        "The iterator was saved when the dataset had other splits: its files, or what a pattern " +
          "matches, have changed since. Restore it with the files as they were",
        { details: { expectedDigest, digest } },
      ),
    );
  }
}

function producedDifferently(sequence: number): LeatError {
  return new LeatError(
    "data_loss",
    `Split ${sequence} of the stream was produced again, because the first attempt was lost, and had ` +
      "another number of elements. Its file has changed while it was read, or a function gives " +
      "different results each time. Begin again with files that do not change",
    { details: { sequence } },
  );
}

/**
 * The answer for a failed request. A lost task only ends: another task produces what is missing.
 */
function failedAnswer(cause: unknown): ElementAnswer {
  const error = LeatError.from(cause);
  const isOver = isSourceGone(error) || error.code === "cancelled";
  return isOver ? { kind: "end" } : refusedAnswer(error);
}
