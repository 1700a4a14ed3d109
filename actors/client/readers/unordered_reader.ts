/** Reads all tasks at once, in the order of arrival: a slow task delays only itself. */
import { LeatError } from "../../../core/error.ts";
import { Fifo } from "../../../core/fifo.ts";
import type { TaskSource } from "../../dispatcher/protocol.ts";
import type { ReadFigures } from "../../dispatcher/protocol_figures.ts";
import { type FencedRef, sameActor } from "../../runtime/ref.ts";
import { isSourceGone, refusedAnswer, type Wanted } from "../../exactly_once/fetcher.ts";
import { type ElementAnswer, isFinal } from "../../worker/protocol.ts";
import { LongPollWait } from "./long_poll_wait.ts";
import {
  BUFFER_BYTES_MAX,
  type HeartbeatNews,
  type Reader,
  type ReaderDependencies,
  type TaskChanges,
} from "./reader.ts";
import { REQUESTS_START } from "./request_tuner.ts";
import { TaskFetcher } from "./task_fetcher.ts";

/** Default limit on requests in flight plus buffered elements; measurements may raise it. */
const OUTSTANDING_MIN = 16;
/** Before the first element, the limit grows by `OUTSTANDING_MIN` each time this many ms pass. */
const LIMIT_GROWTH_MS = 1_000;
/** Limit of the turns for which a slow task is skipped. Each skip is twice as long as the last. */
const TURNS_PASSED_MAX = 256;

/** A request and its answer. Answers are taken in the order of requests. */
interface Request {
  answer?: ElementAnswer;
}

/** A task that this reader requests elements from. */
interface RequestedTask {
  readonly task: TaskSource;
  readonly fetcher: TaskFetcher;
  /** How many requests were worth keeping open when this was last computed. */
  wanted: number;
  /** How many open requests have given up their slots. */
  withoutSlot: number;
  /** Whether the task has no more elements for this client: it has ended, or is gone for good. */
  ended: boolean;
  /** Whether the dispatcher no longer lists the task. */
  gone: boolean;
  inRing: boolean;
  /** The task is skipped before this turn (`#turn`) while other tasks can be asked. */
  fromTurn: number;
  /** For how many turns the task was skipped last. */
  passed: number;
  /** Requests in flight, and those whose answers wait for an earlier answer; oldest first. */
  readonly requests: Request[];
  /** Each resumes a request that gave up its slot and wants one again. */
  readonly returning: (() => void)[];
}

/**
 * Open requests have a limit. Each takes one place within it, its slot. (The slots of files that
 * two processes share are something else.) A request to an unreachable task gives up its slot.
 */
export class UnorderedReader implements Reader {
  /** Always 0: elements go to the feed as they arrive. */
  readonly earlyBytes = 0;
  readonly #deps: ReaderDependencies;
  readonly #tasks = new Map<number, RequestedTask>();
  /** Tasks that may be asked, in turn. A task that may not when its turn comes is dropped. */
  readonly #ring = new Fifo<RequestedTask>();
  /** Tasks that can be reached again, and whose requests want slots again. */
  readonly #returning = new Fifo<RequestedTask>();
  #clientId = -1;
  #inFlight = 0;
  /** How many requests in flight hold no slot. */
  #withoutSlot = 0;
  /** How many tasks have not ended. */
  #live = 0;
  /** How many requests are worth keeping open at these tasks together. */
  #wanted = 0;
  #turn = 0;
  /** The mean size of recent elements; 0 before the first. */
  #meanBytes = 0;
  /** When the first request was made. */
  #sinceMs: number | undefined;
  readonly #longPollWait = new LongPollWait();
  /** Whether the newest heartbeat said that no more tasks or elements will come. */
  #finished = false;

  constructor(deps: ReaderDependencies) {
    this.#deps = deps;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get tasks(): Iterable<ReadFigures> {
    return this.#tasks.values().map(({ fetcher }) => fetcher.figures);
  }

  joined(clientId: number): void {
    this.#clientId = clientId;
  }

  report(): undefined {}

  update({ finished }: Pick<HeartbeatNews, "finished">, changes: TaskChanges): void {
    this.#list(changes);
    for (const open of this.#tasks.values()) this.#offer(open);
    this.#finished = finished;
    this.#endIfDone();
    this.pump();
  }

  #list({ removed, added }: TaskChanges): void {
    for (const taskId of removed) {
      const open = this.#tasks.get(taskId);
      if (open === undefined) continue;
      open.gone = true;
      this.#withoutSlot -= open.withoutSlot;
      this.#end(open);
      open.fetcher.leave();
      this.#tasks.delete(taskId);
    }
    const isScarce = this.#limit < this.#live + added.length;
    for (const task of isScarce ? this.#shuffled(added) : added) {
      this.#tasks.set(task.taskId, this.#open(task));
    }
  }

  /** Shuffles. If all clients had one order, they would ask the same few tasks first. */
  #shuffled<T>(items: readonly T[]): T[] {
    const { random } = this.#deps.context;
    const drawn = items.map((item) => ({ item, key: random.next() }));
    return drawn.sort((a, b) => a.key - b.key).map(({ item }) => item);
  }

  /**
   * Also repeats requests that wait for a slot: once the worker has left, their elements are lost.
   */
  askAgain(source: FencedRef): number | undefined {
    const open = this.#tasks.values().find(({ task }) => sameActor(task.source, source));
    if (open === undefined) return undefined;
    this.#resume(open);
    return open.fetcher.askAgain();
  }

  pump(): void {
    while (this.#returning.length > 0 && this.#hasRoom) this.#resume(this.#returning.shift()!);
    while (this.#hasRoom) {
      const open = this.#nextInTurn();
      if (open === undefined) return;
      this.#fetch(open);
      this.#offer(open);
    }
  }

  stop(): void {
    for (const { fetcher } of this.#tasks.values()) fetcher.leave();
    this.#tasks.clear();
  }

  #open(task: TaskSource): RequestedTask {
    this.#live++;
    this.#wanted += REQUESTS_START;
    const fetcher = new TaskFetcher(this.#deps, this.#clientId, task, {
      faultOf,
      onUnreachable: () => this.#unreachable(open),
      whenRoom: () => this.#slotAt(open),
    });
    const open: RequestedTask = {
      task,
      fetcher,
      wanted: REQUESTS_START,
      withoutSlot: 0,
      ended: false,
      gone: false,
      inRing: false,
      fromTurn: 0,
      passed: 0,
      requests: [],
      returning: [],
    };
    return open;
  }

  /** A request cannot reach its task: it gives up its slot until the task answers. */
  #unreachable(open: RequestedTask): void {
    if (open.gone) return;
    open.withoutSlot++;
    this.#withoutSlot++;
    this.pump();
  }

  /**
   * Resolves when a request that gave up its slot may continue. A task's answers are taken in order: a
   * later request keeps its slot until the earlier ones have answers. So if any request of the task has
   * a slot, the others must not wait for one.
   */
  #slotAt(open: RequestedTask): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    open.returning.push(resolve);
    if (open.requests.length > open.withoutSlot) this.#resume(open);
    else if (open.returning.length === 1) {
      this.#returning.push(open);
      this.pump();
    }
    return promise;
  }

  #resume(open: RequestedTask): void {
    const returning = open.returning.splice(0);
    if (open.gone) return;
    open.withoutSlot -= returning.length;
    this.#withoutSlot -= returning.length;
    for (const go of returning) go();
  }

  /**
   * Limit of open requests at all tasks together, plus buffered elements. Before the first element,
   * the size of elements is unknown: requests to all tasks at once could exceed the buffer, and
   * leave nothing for other clients. So the limit starts low. It grows while nothing arrives,
   * because the tasks asked first may be slow.
   */
  get #limit(): number {
    const { context: { world }, options: { maxOutstandingRequests = Infinity } } = this.#deps;
    if (this.#meanBytes > 0) return maxOutstandingRequests;
    const waitedMs = world.nowMs() - (this.#sinceMs ?? world.nowMs());
    const begun = OUTSTANDING_MIN * (1 + Math.floor(waitedMs / LIMIT_GROWTH_MS));
    return Math.min(maxOutstandingRequests, begun, Math.max(OUTSTANDING_MIN, this.#live));
  }

  /** `#limit`, but no more than the elements of the mean size that fit the buffer. */
  get #limitThatFits(): number {
    const { bufferBytesMax = BUFFER_BYTES_MAX } = this.#deps.options;
    const fit = this.#meanBytes === 0 ? Infinity : Math.ceil(bufferBytesMax / this.#meanBytes);
    return Math.max(1, Math.min(this.#limit, fit));
  }

  /** How many requests may be open at a task: one if the limit is too low for all tasks. */
  #limitAt({ wanted }: RequestedTask): number {
    return this.#limitThatFits < REQUESTS_START * this.#live ? 1 : wanted;
  }

  #isAskable(open: RequestedTask): boolean {
    return !open.ended && open.requests.length < this.#limitAt(open);
  }

  /** Puts a task that can be asked into the ring. */
  #offer(open: RequestedTask): void {
    if (open.inRing || !this.#isAskable(open)) return;
    open.inRing = true;
    this.#ring.push(open);
  }

  /** The next task to ask. Skipped tasks are asked only when no other can be. */
  #nextInTurn(): RequestedTask | undefined {
    let passedOver: RequestedTask | undefined;
    for (let left = this.#ring.length; left > 0; left--) {
      const open = this.#ring.shift()!;
      open.inRing = false;
      if (!this.#isAskable(open)) continue;
      this.#turn++;
      if (open.fromTurn <= this.#turn) return open;
      passedOver ??= open;
      this.#offer(open);
    }
    return passedOver;
  }

  get #hasRoom(): boolean {
    const { feed, options } = this.#deps;
    const { bufferBytesMax = BUFFER_BYTES_MAX } = options;
    if (feed.closed) return false;
    const most = this.#limit;
    const requests = this.#inFlight - this.#withoutSlot;
    if (requests === 0 && feed.length === 0) return true;
    if (this.#deps.context.world.fault("first_come.buffer_full")) return false;
    if (requests + feed.length >= (most < Infinity ? most : this.#outstandingMax)) return false;
    return feed.bytes + requests * this.#meanBytes < bufferBytesMax;
  }

  /** Limit of requests plus buffered elements: the requests worth keeping open at all tasks. */
  get #outstandingMax(): number {
    return Math.max(OUTSTANDING_MIN, this.#wanted);
  }

  #fetch(open: RequestedTask): void {
    this.#resume(open);
    const { context } = this.#deps;
    const nowMs = context.world.nowMs();
    this.#sinceMs ??= nowMs;
    if (this.#inFlight++ === 0) this.#longPollWait.noteRequest(nowMs);
    const request: Request = {};
    open.requests.push(request);
    const most = this.#limitThatFits;
    // While element sizes are unknown, the limit may later fall below the number of tasks.
    const isScarce = this.#meanBytes === 0 || most < this.#live;
    const wanted = isScarce ? { waitMs: this.#longPollWait.waitMs(nowMs, most) } : {};
    context.run(() =>
      open.fetcher.fetch(wanted).then(
        (answer) => this.#answered(open, request, answer),
        (error) => this.#answered(open, request, failed(LeatError.from(error))),
      )
    );
  }

  /** Takes a task's answers in the order of its requests; that to a repeated one may come late. */
  #answered(open: RequestedTask, request: Request, answer: ElementAnswer): void {
    request.answer = answer;
    for (let next = open.requests[0]?.answer; next !== undefined; next = open.requests[0]?.answer) {
      open.requests.shift();
      this.#inFlight--;
      if (next.kind === "element") this.#noteElement(next.element.byteLength);
      this.#came(open, next);
    }
  }

  #noteElement(bytes: number): void {
    this.#longPollWait.noteArrival(this.#deps.context.world.nowMs());
    const mean = this.#meanBytes;
    this.#meanBytes = mean === 0 ? bytes : mean + (bytes - mean) / OUTSTANDING_MIN;
  }

  #came(open: RequestedTask, answer: ElementAnswer): void {
    const { feed, refresh } = this.#deps;
    if (!open.ended) {
      this.#wanted += open.fetcher.requestsWanted - open.wanted;
      open.wanted = open.fetcher.requestsWanted;
    }
    if (answer.kind === "later") {
      open.passed = Math.min(TURNS_PASSED_MAX, 2 * open.passed + 1);
      open.fromTurn = this.#turn + open.passed;
    } else open.passed = 0;
    const isNews = answer.kind === "end" && !open.ended;
    if (isNews) {
      this.#end(open);
      this.#deps.unread.ended(open.task);
    }
    // Before `feed.push`: if the loop takes the element at once, `pump` may ask this task again.
    this.#offer(open);
    if (isFinal(answer)) feed.fail(LeatError.fromWire(answer.error));
    else if (answer.kind === "element" || answer.kind === "error") feed.push(answer);
    this.#endIfDone();
    if (isNews && this.#live === 0 && !feed.closed) refresh();
    this.pump();
  }

  #end(open: RequestedTask): void {
    if (open.ended) return;
    open.ended = true;
    this.#live--;
    this.#wanted -= open.wanted;
  }

  /**
   * Ends the feed if no task is left. Waits for requests in flight: after a task has ended, one
   * whose answer was lost is repeated.
   */
  #endIfDone(): void {
    if (this.#finished && this.#live === 0 && this.#inFlight === 0) this.#deps.feed.end();
  }
}

function faultOf({ kind }: ElementAnswer, { waitMs }: Wanted): string | undefined {
  const isFit = kind === "element" || kind === "error" || kind === "end" ||
    kind === "later" && waitMs !== undefined;
  return isFit ? undefined : `"${kind}" as the answer to a request for any element`;
}

/** The answer for a failed request. A lost task only ends: the dispatcher replaces its worker. */
function failed(error: LeatError): ElementAnswer {
  if (error.code === "cancelled") return { kind: "skip" };
  return isSourceGone(error) ? { kind: "end" } : refusedAnswer(error);
}
