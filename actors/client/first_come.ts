/**
 * Reading tasks first come first served: every task has requests open, and whatever arrives first is
 * next. A slow task holds up nobody but itself.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { TaskSource } from "../dispatcher/protocol.ts";
import type { ElementFetcher } from "../elements/fetcher.ts";
import type { ElementAnswer } from "../worker/protocol.ts";
import {
  fetcherOf,
  type HeartbeatNews,
  type HeartbeatReport,
  type Reader,
  type ReaderSurroundings,
  sourceKey,
} from "./reader.ts";

/** Requests in flight and elements waiting unless the user says otherwise. */
const OUTSTANDING_MIN = 16;
/** Requests in flight to one task: one is served while the next is on its way. */
const OUTSTANDING_PER_TASK = 2;
const BUFFER_BYTES_MAX = 256 * 2 ** 20;

interface OpenTask {
  readonly task: TaskSource;
  readonly fetcher: ElementFetcher;
  inFlight: number;
  /** It has no more for this client: it said so, or it is gone for good. */
  ended: boolean;
  /** When all answers to the requests so far have been taken in: they are, in the order of requests. */
  taken: Promise<void>;
}

/** See the module. */
export class FirstComeReader implements Reader {
  /** What arrives is given on at once. */
  readonly earlyBytes = 0;
  readonly #around: ReaderSurroundings;
  readonly #tasks = new Map<string, OpenTask>();
  readonly #unreachable = new Set<number>();
  #clientId = -1;
  #inFlight = 0;
  /** Where the round-robin over tasks goes on. */
  #turn = 0;
  /** The newest heartbeat's word on whether there will be more tasks or elements. */
  #finished = false;

  constructor(around: ReaderSurroundings) {
    this.#around = around;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  joined(clientId: number): void {
    this.#clientId = clientId;
  }

  report(): HeartbeatReport {
    const lostTasks = [...this.#unreachable].map((taskId) => ({ taskId }));
    this.#unreachable.clear();
    return lostTasks.length === 0 ? {} : { lostTasks };
  }

  learn({ tasks, finished }: HeartbeatNews): void {
    const listed = new Map(tasks.map((task) => [sourceKey(task), task]));
    for (const [key, open] of this.#tasks) {
      if (listed.has(key)) continue;
      open.fetcher.leave();
      this.#tasks.delete(key);
    }
    for (const [key, task] of listed) {
      if (this.#tasks.has(key)) continue;
      const lost = () => this.#unreachable.add(task.taskId);
      const fetcher = fetcherOf(this.#around, this.#clientId, task, lost);
      this.#tasks.set(key, {
        task,
        fetcher,
        inFlight: 0,
        ended: false,
        taken: Promise.resolve(),
      });
    }
    this.#finished = finished;
    this.#endIfDone();
    this.pump();
  }

  pump(): void {
    const tasks = [...this.#tasks.values()].filter((task) => !task.ended);
    for (let full = 0; full < tasks.length && this.#hasRoom();) {
      const task = tasks[this.#turn++ % tasks.length]!;
      if (task.inFlight >= OUTSTANDING_PER_TASK) full++;
      else {
        full = 0;
        this.#fetch(task);
      }
    }
  }

  stop(): void {
    for (const { fetcher } of this.#tasks.values()) fetcher.leave();
    this.#tasks.clear();
  }

  get #haveAllEnded(): boolean {
    return [...this.#tasks.values()].every((task) => task.ended);
  }

  #hasRoom(): boolean {
    const { feed, options } = this.#around;
    const { maxOutstandingRequests, bufferBytesMax = BUFFER_BYTES_MAX } = options;
    const most = maxOutstandingRequests ??
      Math.max(OUTSTANDING_MIN, OUTSTANDING_PER_TASK * this.#tasks.size);
    return !feed.closed && this.#inFlight + feed.length < most && feed.bytes < bufferBytesMax;
  }

  #fetch(open: OpenTask): void {
    open.inFlight++;
    this.#inFlight++;
    const before = open.taken;
    const answered = open.fetcher.fetch().catch((error) =>
      this.#failed(open, LeatError.from(error))
    );
    open.taken = (async () => {
      // What was lost on the way and asked for again comes late: a task's elements keep their order.
      await before;
      const answer = await answered;
      open.inFlight--;
      this.#inFlight--;
      this.#came(open, answer);
    })();
    this.#around.context.run(() => open.taken);
  }

  #came(open: OpenTask, answer: ElementAnswer): void {
    const hasEnded = answer.kind === "end" && !open.ended;
    if (answer.kind === "element" || answer.kind === "error") this.#around.feed.push(answer);
    if (hasEnded) open.ended = true;
    this.#endIfDone();
    if (hasEnded && this.#haveAllEnded && !this.#around.feed.closed) this.#around.refresh();
    this.pump();
  }

  /** A task that is gone is no error of the data: its worker was lost, and the dispatcher deals with it. */
  #failed(open: OpenTask, error: LeatError): ElementAnswer {
    const gone = error.code === "not_found" || error.code === "failed_precondition";
    if (error.code === "cancelled") return { kind: "skip" };
    if (!gone) return { kind: "error", error: error.toWire() };
    this.#unreachable.add(open.task.taskId);
    return { kind: "end" };
  }

  /** Also an ended task may still owe an element: its answer was lost, and is asked for again. */
  #endIfDone(): void {
    if (this.#finished && this.#haveAllEnded && this.#inFlight === 0) this.#around.feed.end();
  }
}
