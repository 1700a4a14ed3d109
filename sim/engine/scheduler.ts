/**
 * Virtual time: a heap of events. The scheduler runs one event at a time, at that event's time. Before
 * the next event, it waits until all microtasks that the event started have run.
 */
import process from "node:process";
import { LeatError } from "../../core/error.ts";
import type { Life } from "./life.ts";

/** Minimum size of the heap for sweeping cancelled events from it. */
const SWEEP_EVENTS_MIN = 64;
/** Maximum number of kinds of pending events listed when a run takes too long. */
const PENDING_KINDS_MAX = 12;

export interface ScheduledEvent {
  sequence: number;
  readonly what: string;
  /**
   * The life of a node to which the event belongs. The event is dropped when the life ends, and waits
   * while the life is paused.
   */
  readonly life: Life | undefined;
  timeUs: number;
  /** Undefined if the event was cancelled or has run. */
  run: (() => void) | undefined;
}

/** When a run ends, and when it fails because it takes too long. */
export interface RunLimits {
  /** Called before each event, and once more at the end. */
  readonly until: () => boolean;
  /** Maximum virtual time of the run, in ms from now. */
  readonly timeMaxMs: number;
  /** Maximum number of events. Default 10 million. */
  readonly stepsMax?: number;
  /**
   * Number of events per turn of the event loop. A turn takes longer than most events, but only the end
   * of a turn reports unhandled rejections. Default 1.
   */
  readonly eventsPerTurn?: number;
}

/** Runs events in the order of (time, sequence). Times are whole microseconds. */
export class Scheduler {
  #heap: ScheduledEvent[] = [];
  #cancelled = 0;
  #sequence = 0;
  #nowUs = 0;
  #steps = 0;
  #running = false;

  /** Virtual time since the beginning, in µs. */
  get nowUs(): number {
    return this.#nowUs;
  }

  /** Events run so far. */
  get steps(): number {
    return this.#steps;
  }

  /** Number of events still to run. */
  get pending(): number {
    return this.#heap.length - this.#cancelled;
  }

  /** Schedules an event. If its time is past, it runs now, after other events scheduled for now. */
  at(timeUs: number, what: string, run: () => void, life?: Life): ScheduledEvent {
    const event: ScheduledEvent = {
      sequence: ++this.#sequence,
      what,
      life,
      timeUs: Math.max(this.#nowUs, Math.ceil(timeUs)),
      run,
    };
    this.#push(event);
    return event;
  }

  cancel(event: ScheduledEvent): void {
    if (event.run === undefined) return;
    event.run = undefined;
    this.#cancelled++;
    if (this.#cancelled * 2 > this.#heap.length && this.#heap.length > SWEEP_EVENTS_MIN) {
      this.#sweep();
    }
  }

  /**
   * Runs events until `until()` holds.
   *
   * Between two events, all microtasks that the first event started run to completion, however many and
   * however nested. (A fixed number of microtask turns would be a guess. Awaiting a handler that waits
   * for virtual time would deadlock.) So no event may wait for real I/O, threads or modules.
   *
   * `process.nextTick`, called from a microtask, ensures this, because a tick waits for all microtasks.
   * It takes two thirds of the time of a turn of the event loop by `setImmediate`. But only such a turn,
   * and the end of the run, reports unhandled rejections.
   * @throws LeatError `failed_precondition` if no event is left, `deadline_exceeded` beyond the limits
   * (both list the pending events), and the error of an event.
   */
  async run(
    { until, timeMaxMs, stepsMax = 10_000_000, eventsPerTurn = 1 }: RunLimits,
  ): Promise<void> {
    if (this.#running) throw new LeatError("failed_precondition", "The scheduler runs already");
    this.#running = true;
    const endUs = this.#nowUs + timeMaxMs * 1_000;
    const endSteps = this.#steps + stepsMax;
    try {
      await new Promise<void>((resolve, reject) => {
        let remaining = eventsPerTurn;
        const tick = () => process.nextTick(step);
        const step = () => {
          try {
            if (until()) return setImmediate(end);
            this.#next(endUs, endSteps);
          } catch (error) {
            return setImmediate(reject, error);
          }
          if (--remaining > 0) return queueMicrotask(tick);
          remaining = eventsPerTurn;
          setImmediate(step);
        };
        // Calls `until()` once more, because unhandled rejections have been reported by now.
        const end = () => {
          try {
            until();
            resolve();
          } catch (error) {
            reject(error);
          }
        };
        setImmediate(step);
      });
    } finally {
      this.#running = false;
    }
  }

  /** Runs the next event. */
  #next(endUs: number, endSteps: number): void {
    if (this.#steps >= endSteps) {
      throw this.#stuck("deadline_exceeded", `The run is not done after ${this.#steps} events`);
    }
    for (;;) {
      const event = this.#pop();
      if (event === undefined) {
        throw this.#stuck("failed_precondition", "Nothing is left to happen");
      }
      if (event.timeUs > endUs) {
        this.#push(event);
        const timeMs = Math.round(endUs / 1_000);
        throw this.#stuck("deadline_exceeded", `The run is not done at ${timeMs} ms`);
      }
      if (event.life !== undefined) {
        if (!event.life.alive) continue;
        if (event.life.pausedUntilUs > event.timeUs) {
          // A new number keeps the order of delayed events.
          event.timeUs = event.life.pausedUntilUs;
          event.sequence = ++this.#sequence;
          this.#push(event);
          continue;
        }
      }
      this.#nowUs = event.timeUs;
      this.#steps++;
      event.life?.spend();
      const run = event.run!;
      event.run = undefined;
      return run();
    }
  }

  #stuck(code: "failed_precondition" | "deadline_exceeded", what: string): LeatError {
    const kinds = new Map<string, number>();
    for (const { run, what, life } of this.#heap) {
      if (run === undefined || life?.alive === false) continue;
      const kind = life === undefined ? what : `${what} of ${life.node}`;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    const frequent = [...kinds].sort(([, a], [, b]) => b - a).slice(0, PENDING_KINDS_MAX);
    const pending = frequent.map(([kind, count]) => `${count} × ${kind}`).join(", ");
    return new LeatError(code, `${what}; pending: ${pending || "nothing"}`);
  }

  #push(event: ScheduledEvent): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = event;
  }

  /** Removes and returns the first event that was not cancelled. */
  #pop(): ScheduledEvent | undefined {
    const heap = this.#heap;
    while (heap.length > 0) {
      const first = heap[0]!;
      const last = heap.pop()!;
      if (heap.length > 0) this.#sink(last, 0);
      if (first.run !== undefined) return first;
      this.#cancelled--;
    }
    return undefined;
  }

  #sink(event: ScheduledEvent, at: number): void {
    const heap = this.#heap;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, event)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = event;
  }

  #sweep(): void {
    this.#heap = this.#heap.filter((event) => event.run !== undefined);
    this.#cancelled = 0;
    for (let at = (this.#heap.length >> 1) - 1; at >= 0; at--) this.#sink(this.#heap[at]!, at);
  }
}

function isBefore(a: ScheduledEvent, b: ScheduledEvent): boolean {
  return a.timeUs < b.timeUs || (a.timeUs === b.timeUs && a.sequence < b.sequence);
}
