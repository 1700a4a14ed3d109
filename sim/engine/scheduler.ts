/**
 * Virtual time: an event heap that runs one event at a time, with `now` at that event's time, and
 * waits until everything that the event has started is at rest before the next one.
 */
import process from "node:process";
import { LeatError } from "../../core/error.ts";
import type { Life } from "./life.ts";

/** With fewer events, cancelled ones are not swept from the heap. */
const SWEEP_EVENTS_MIN = 64;
/** Maximum number of kinds of pending events listed when a run takes too long. */
const PENDING_KINDS_MAX = 12;

export interface ScheduledEvent {
  sequence: number;
  readonly what: string;
  /**
   * The life of a node that it belongs to: it is dropped when the life ends, and waits while it is
   * paused.
   */
  readonly life: Life | undefined;
  timeUs: number;
  /** Undefined: cancelled, or past. */
  run: (() => void) | undefined;
}

/** When a run ends, and when it has taken too long. */
export interface RunLimits {
  /** Called before each event, and once more at the end. */
  readonly until: () => boolean;
  /** Maximum virtual time of the run, in ms from now. */
  readonly timeMaxMs: number;
  /** Maximum number of events. Default 10 million. */
  readonly stepsMax?: number;
  /**
   * Number of events per turn of the event loop, because a turn takes longer than most events.
   * Rejections unhandled at the end of a turn are reported. Default 1.
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

  /** Schedules an event; if its time is past, it runs now, after other events scheduled for now. */
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
   * Between two events all microtasks that the first one started run to completion, however many
   * and however nested. (A fixed number of microtask turns would be a guess, and awaiting a handler
   * that itself waits for virtual time would deadlock.) So nothing inside may wait for real I/O,
   * threads or modules.
   *
   * `process.nextTick`, called from a microtask, does that: a tick waits for all microtasks. It
   * takes two thirds of the time of a turn of the event loop by `setImmediate`, but only such a
   * turn, and the end, reports unhandled rejections.
   * @throws LeatError `failed_precondition` if no event is left before that, `deadline_exceeded`
   * beyond the limits (both list what is pending), and the error of an event.
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
        let left = eventsPerTurn;
        const tick = () => process.nextTick(step);
        const step = () => {
          try {
            if (until()) return setImmediate(end);
            this.#next(endUs, endSteps);
          } catch (error) {
            return setImmediate(reject, error);
          }
          if (--left > 0) return queueMicrotask(tick);
          left = eventsPerTurn;
          setImmediate(step);
        };
        // Checked once more: unhandled rejections have been reported by now.
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
        // Nothing runs on a node that is down, so nothing has to settle either.
        if (!event.life.alive) continue;
        if (event.life.pausedUntilUs > event.timeUs) {
          // With a new number, so that delayed events keep their order.
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
    const most = [...kinds].sort(([, a], [, b]) => b - a).slice(0, PENDING_KINDS_MAX);
    const pending = most.map(([kind, count]) => `${count} × ${kind}`).join(", ");
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
