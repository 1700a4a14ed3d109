/**
 * Reading a DETERMINISTIC job: what tasks give is put in the order of the stream, whoever gives it
 * and when. What comes a second time, of a split that was produced again, is dropped.
 *
 * What arrives too early waits here, within a number of bytes. Beyond it nothing is asked for but
 * the split that is next.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { TaskSource } from "../dispatcher/protocol.ts";
import type { OrderFigures, ReadFigures } from "../dispatcher/protocol_figures.ts";
import { Fifo } from "../runtime/fifo.ts";
import type { Timer } from "../runtime/world.ts";
import { refusedAnswer } from "../elements/refused.ts";
import { type ElementAnswer, type Own, type Place, SOME_CLIENT } from "../worker/protocol.ts";
import { BlockedMeter } from "./blocked_meter.ts";
import { StreamNumbers } from "./numbering.ts";
import type {
  HeartbeatNews,
  HeartbeatReport,
  Reader,
  ReaderSurroundings,
  TaskChanges,
} from "./reader.ts";
import { TaskFetcher } from "./task_fetcher.ts";

/** Elements that wait for the training loop in order, unless the user says otherwise. */
const READY_MAX = 16;
/** Requests in flight to one task: one is served while the next is on its way. */
const OUTSTANDING_PER_TASK = 2;
/** Bytes that wait for their turn beyond which only what is next is asked for. */
const WINDOW_BYTES_MAX = 256 * 2 ** 20;
/** Likewise, how many elements: small ones take more memory than their bytes. */
const WINDOW_ELEMENTS_MAX = 2 ** 16;
/** The dispatcher is told at once when the mark has moved by so many splits, */
const MARK_NEWS_MAX = 64;
/** or by such a part of those that it hands out beyond the mark: else tasks would wait for a heartbeat. */
const MARK_NEWS_SHARE = 1 / 4;
/**
 * How long to wait before a task is asked again for what it had nothing of, in ms; doubles up to the
 * maximum. It comes by such a split only where that was lost elsewhere.
 */
const LATER_MIN_MS = 20;
const LATER_MAX_MS = 320;

/** An answer that has a place in the stream. */
type Placed = Extract<ElementAnswer, { readonly place?: Place }> & { readonly place: Place };

/** What is asked of a task. */
interface WantedSplit {
  readonly upTo?: number;
  readonly own?: Own;
}

interface OpenTask {
  readonly task: TaskSource;
  readonly fetcher: TaskFetcher;
  inFlight: number;
  /** It has no more for anybody, or is gone. */
  ended: boolean;
  /** It had nothing of this split, or before it, a moment ago. */
  lackedUpTo: number;
  /** Runs until it is asked again for what it lacked. */
  pause: Timer | undefined;
  /** How long the next pause is. */
  pauseMs: number;
  /** Whether it stands in the ring. */
  inRing: boolean;
}

/** What has arrived of a split and was not given on. */
interface ArrivedSplit {
  readonly items: Placed[];
  /** What has overtaken something before it, by its index. */
  readonly early: Map<number, Placed>;
  /** How much has arrived, what was given on included. */
  arrived: number;
  /** Nothing more comes. */
  whole: boolean;
}

type Passed = Extract<Placed, { readonly kind: "passed" }>;

/** See the module. */
export class OrderedReader implements Reader {
  readonly #around: ReaderSurroundings;
  readonly #tasks = new Map<number, OpenTask>();
  readonly #splits = new Map<number, ArrivedSplit>();
  /** Where the stream goes on, and the splits before that of which rows are needed once more. */
  readonly #startAt: number;
  readonly #behind: readonly number[];
  /** Where only a consumer's own elements are read: which those are. */
  readonly #numbers: StreamNumbers | undefined;
  /** Of what waits for the training loop, in its order: whether an element of its own comes of it. */
  readonly #ownFed: boolean[] = [];
  #clientId = -1;
  /** Tasks that could be asked, in turn. What is no longer so is found out when its turn comes. */
  readonly #ring = new Fifo<OpenTask>();
  /** The split that is given on next. */
  #head: number;
  /** All before it have arrived whole. */
  #mark: number;
  #markTold: number;
  #markNews = MARK_NEWS_MAX;
  #total = Infinity;
  /**
   * Whether it was heard which table of splits the places are in. Before that nothing is given, or an
   * iterator could go on in other data than it was saved in, or save a place that nobody could check.
   */
  #isTableKnown = false;
  #isTableAsked = false;
  #bytes = 0;
  #elements = 0;
  /** Runs while the training loop waits for one split, and has something of others here. */
  readonly #headOfLine: BlockedMeter;
  /** The most there ever was of what the window bounds. */
  #bytesMax = 0;
  #openSplitsMax = 0;

  constructor(around: ReaderSurroundings) {
    this.#around = around;
    this.#headOfLine = new BlockedMeter(() => around.context.world.nowMs());
    const { startAt = 0, behind = [], numbering } = around.options.ordered ?? {};
    this.#numbers = numbering === undefined ? undefined : new StreamNumbers(numbering);
    this.#startAt = startAt;
    this.#behind = behind;
    this.#head = this.#mark = this.#markTold = behind[0] ?? startAt;
  }

  get inFlight(): number {
    return [...this.#tasks.values()].reduce((sum, { inFlight }) => sum + inFlight, 0);
  }

  get earlyBytes(): number {
    return this.#bytes;
  }

  get orderFigures(): OrderFigures {
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

  report(): HeartbeatReport {
    this.#markTold = this.#mark;
    const done = [...this.#splits].filter(([sequence, { whole }]) =>
      whole && sequence > this.#mark
    );
    return { mark: this.#mark, done: done.map(([sequence]) => sequence).sort((a, b) => a - b) };
  }

  learn(
    { ordered, windowSplits = Infinity }: Pick<HeartbeatNews, "ordered" | "windowSplits">,
    { gone, come }: TaskChanges,
  ): void {
    this.#markNews = Math.max(1, Math.min(MARK_NEWS_MAX, MARK_NEWS_SHARE * windowSplits));
    for (const taskId of gone) {
      this.#tasks.get(taskId)?.fetcher.leave();
      this.#tasks.delete(taskId);
    }
    // Any of the others may be handed what those had.
    if (gone.length > 0) { for (const open of this.#tasks.values()) endPause(open); }
    for (const task of come) {
      const fetcher = new TaskFetcher(this.#around, this.#clientId, task, {
        onUnreachable: () => {},
      });
      const open = {
        task,
        fetcher,
        inFlight: 0,
        ended: false,
        lackedUpTo: -1,
        pause: undefined,
        pauseMs: LATER_MIN_MS,
        inRing: false,
      };
      this.#tasks.set(task.taskId, open);
      this.#offer(open);
    }
    if (ordered?.left !== undefined) this.#tellLeft(ordered.left);
    if (ordered !== undefined && !this.#isTableKnown) {
      this.#isTableKnown = true;
      this.#checkTable(ordered.digest);
      this.#total = ordered.total;
    }
    this.pump();
  }

  pump(): void {
    this.#giveOn();
    const { feed } = this.#around;
    this.#headOfLine.note(feed.isWaitedFor && this.#elements > 0);
    const isFull = this.#isFull;
    // A full window is emptied by whoever takes elements, unless the one that is next is missing.
    if (feed.closed || (isFull && feed.length > 0)) return;
    // Which elements are its own is known of the split that is next, and of no later one.
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
    return !open.ended && open.inFlight < OUTSTANDING_PER_TASK &&
      this.#tasks.get(open.task.taskId) === open;
  }

  stop(): void {
    for (const { fetcher } of this.#tasks.values()) fetcher.leave();
    this.#tasks.clear();
    this.#splits.clear();
    this.#bytes = this.#elements = 0;
  }

  get #lacksTasks(): boolean {
    return !this.#isTableKnown || [...this.#tasks.values()].every((task) => task.ended);
  }

  /** Whether no task has the split that is next. */
  get #isHeadNowhere(): boolean {
    return this.#tasks.values().every((task) => task.ended || task.lackedUpTo >= this.#head);
  }

  get #isFull(): boolean {
    const { feed, options: { bufferBytesMax = WINDOW_BYTES_MAX } } = this.#around;
    return this.#bytes + feed.bytes >= bufferBytesMax || this.#elements >= WINDOW_ELEMENTS_MAX;
  }

  /**
   * Whether more may wait for the training loop. Where there are other consumers only its own elements
   * count, or, where those are not known here, only the window: a consumer has to take in what lies
   * between its elements, or the others could not go on to theirs.
   */
  get #hasRoom(): boolean {
    const { feed, options } = this.#around;
    const most = options.maxOutstandingRequests ?? READY_MAX;
    if (this.#numbers !== undefined) {
      this.#ownFed.splice(0, this.#ownFed.length - feed.length);
      return this.#ownFed.filter(Boolean).length < most;
    }
    return options.parameters.numConsumers !== undefined || feed.length < most;
  }

  /** Whether what is read now is counted: what is read once more for its rows has been before. */
  get #isCounted(): boolean {
    return this.#numbers !== undefined && this.#head >= this.#startAt;
  }

  #isOwn(number: number): boolean {
    const { parameters: { numConsumers = 1 }, consumerIndex = 0 } = this.#around.options;
    return number % numConsumers === consumerIndex;
  }

  #wanted(isBounded: boolean): WantedSplit {
    return {
      ...(isBounded ? { upTo: this.#head } : {}),
      ...(this.#isCounted ? { own: this.#numbers!.ownOf(this.#head) } : {}),
    };
  }

  /** Gives on what is next, as far as it is there and there is room. */
  #giveOn(): void {
    const { feed } = this.#around;
    if (!this.#isTableKnown) return this.#askForTable();
    while (!feed.closed && this.#hasRoom) {
      if (this.#head >= this.#total) return feed.end();
      const split = this.#splits.get(this.#head);
      const item = split?.items.shift();
      if (item === undefined) return;
      this.#letGo(item);
      const counted = this.#isCounted ? this.#numbers!.count(item) : undefined;
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

  /** Once: a regular heartbeat brings it, too. */
  #askForTable(): void {
    if (this.#isTableAsked || this.#elements === 0) return;
    this.#isTableAsked = true;
    this.#around.refresh();
  }

  /**
   * Tells every task which consumers have left, so that it keeps nothing for them. Said again and again:
   * a word may be lost.
   */
  #tellLeft(left: readonly number[]): void {
    for (const { task: { source } } of this.#tasks.values()) {
      for (const consumerIndex of left) {
        this.#around.context.tell(source, "leave", { clientId: SOME_CLIENT, consumerIndex });
      }
    }
  }

  #fetch(open: OpenTask, wanted: WantedSplit): void {
    open.inFlight++;
    this.#around.context.run(async () => {
      const answer = await open.fetcher.fetch(wanted).catch((error): ElementAnswer =>
        failedAnswer(LeatError.from(error))
      );
      open.inFlight--;
      this.#offer(open);
      this.#came(open, answer, wanted.upTo ?? this.#head);
    });
  }

  #came(open: OpenTask, answer: ElementAnswer, upTo: number): void {
    if (answer.kind !== "later") open.pauseMs = LATER_MIN_MS;
    if ("place" in answer && answer.place !== undefined) this.#arrive(answer as Placed);
    else if (answer.kind === "error") this.#around.feed.fail(LeatError.fromWire(answer.error));
    else if (answer.kind === "later") this.#pause(open, (answer.from ?? upTo + 1) - 1);
    else if (answer.kind === "end" && !open.ended) {
      open.ended = true;
      if (this.#lacksTasks) this.#around.refresh();
    }
    this.pump();
  }

  /** Somebody else has what is next; or this task, in a while, if it is lost there. */
  #pause(open: OpenTask, lackedUpTo: number): void {
    open.lackedUpTo = lackedUpTo;
    // What is lost is handed out when it is known that this reader has what comes before.
    if (this.#mark > this.#markTold && this.#isHeadNowhere) this.#tellMark();
    if (open.pause !== undefined) return;
    open.pause = this.#around.context.timer(open.pauseMs, () => {
      open.pause = undefined;
      open.lackedUpTo = -1;
      this.pump();
    });
    open.pauseMs = Math.min(2 * open.pauseMs, LATER_MAX_MS);
  }

  /**
   * Answers to overlapping requests may overtake each other, so those of a split are put in order;
   * what has arrived before, from a task that was lost since, is dropped.
   */
  #arrive(answer: Placed): void {
    const { sequence, index } = answer.place;
    if (sequence < this.#head) return;
    let split = this.#splits.get(sequence);
    if (split === undefined) {
      split = { items: [], early: new Map(), arrived: 0, whole: false };
      this.#splits.set(sequence, split);
    }
    if (endOf(answer) <= split.arrived || split.whole) return;
    const known = split.early.get(index);
    if (known !== undefined) {
      // Produced again, a run of what is passed over may be longer: the rest of it comes with nothing else.
      if (endOf(answer) <= endOf(known)) return;
      this.#letGo(known);
    }
    this.#elements++;
    if ("element" in answer) this.#bytes += answer.element.byteLength;
    this.#bytesMax = Math.max(this.#bytesMax, this.#bytes + this.#around.feed.bytes);
    this.#openSplitsMax = Math.max(this.#openSplitsMax, sequence - this.#mark + 1);
    split.early.set(index, answer);
    for (let next = takeNext(split); next !== undefined; next = takeNext(split)) {
      split.arrived = endOf(next);
      split.items.push(next);
      split.whole ||= next.kind === "split_end";
    }
    this.#dropArrived(split);
    if (split.whole) this.#moveMark();
  }

  /** What had overtaken something, and has come once more within a longer run of what is passed over. */
  #dropArrived({ early, arrived }: ArrivedSplit): void {
    for (const [index, item] of early) {
      if (endOf(item) > arrived) continue;
      early.delete(index);
      this.#letGo(item);
    }
  }

  /** It waits here no more. */
  #letGo(item: Placed): void {
    this.#elements--;
    if ("element" in item) this.#bytes -= item.element.byteLength;
  }

  #moveMark(): void {
    while (this.#mark < this.#head || this.#splits.get(this.#mark)?.whole === true) {
      this.#mark = this.#after(this.#mark);
    }
    if (this.#mark - this.#markTold >= this.#markNews) this.#tellMark();
  }

  #tellMark(): void {
    this.#markTold = this.#mark;
    this.#around.refresh();
  }

  /** The split that follows one: those between what is behind and where the stream goes on are not read. */
  #after(sequence: number): number {
    const next = sequence + 1;
    if (next >= this.#startAt) return next;
    return this.#behind.find((at) => at >= next) ?? this.#startAt;
  }

  #checkTable(digest: string): void {
    const { expectedDigest, onTable } = this.#around.options.ordered ?? {};
    onTable?.(digest);
    if (expectedDigest === undefined || expectedDigest === digest) return;
    this.#around.feed.fail(
      new LeatError(
        "failed_precondition",
        "The iterator was saved when the dataset had other splits: its files, or what a pattern " +
          "matches, have changed since. Restore it where they are as they were",
        { details: { expectedDigest, digest } },
      ),
    );
  }
}

/** The task may have what it lacked. */
function endPause(open: OpenTask): void {
  open.pause?.cancel();
  Object.assign(open, { pause: undefined, pauseMs: LATER_MIN_MS, lackedUpTo: -1 });
}

/** What follows what has arrived of a split, if it is there. */
function takeNext({ early, arrived }: ArrivedSplit): Placed | undefined {
  const next = early.get(arrived) ?? early.values().find((item) => reaches(item, arrived));
  if (next !== undefined) early.delete(next.place.index);
  return next;
}

/** Runs of what is passed over may begin elsewhere where a split is produced again. */
function reaches(item: Placed, arrived: number): boolean {
  return item.place.index <= arrived && endOf(item) > arrived;
}

/** The index that follows. */
function endOf(item: Placed): number {
  return item.place.index + (item.kind === "passed" ? (item as Passed).count : 1);
}

/** A task that is gone is the dispatcher's business: another produces what it owed. */
function failedAnswer(error: LeatError): ElementAnswer {
  const gone = error.code === "not_found" || error.code === "failed_precondition" ||
    error.code === "cancelled";
  return gone ? { kind: "end" } : refusedAnswer(error);
}
