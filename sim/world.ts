/** The world (clocks, timers, storage) of the actors on a simulated node, for one life. */
import type { DurableLog } from "../actors/runtime/durable_log.ts";
import type { LogLevel, Timer, World } from "../actors/runtime/world.ts";
import type { SimDisk } from "./engine/disk.ts";
import type { FaultPoints } from "./faults/fault_points.ts";
import type { Life } from "./engine/life.ts";
import type { SimRandom } from "./engine/random.ts";
import type { ScheduledEvent, Scheduler } from "./engine/scheduler.ts";

/** The wall clock at the start of every run: 2026-01-01. */
const WALL_ORIGIN_MS = 1_767_225_600_000;

/** A line that an actor logged. */
export interface SimLogLine {
  readonly timeMs: number;
  readonly node: string;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Record<string, unknown> | undefined;
}

/** The parts of a {@linkcode SimWorld}. */
export interface SimWorldOptions {
  readonly scheduler: Scheduler;
  readonly life: Life;
  readonly random: SimRandom;
  readonly disk: SimDisk;
  readonly faultPoints: FaultPoints;
  /** Deviation of the node's clocks from true time, in parts per million. */
  readonly driftPpm: number;
  /** Resolution of the node's monotonic clock, in ms. Default 0: the finest. */
  readonly grainMs?: number;
  readonly onLog: (line: SimLogLine) => void;
}

/** A timer. It allocates little, because there are many timers and nearly all are cancelled. */
class SimTimer implements Timer {
  readonly #world: SimWorld;
  readonly #dueMs: number;
  readonly #fn: () => void;
  #event: ScheduledEvent;

  constructor(world: SimWorld, dueMs: number, fn: () => void) {
    this.#world = world;
    this.#dueMs = dueMs;
    this.#fn = fn;
    this.#event = this.#set();
  }

  cancel(): void {
    this.#world.cancel(this.#event);
  }

  #set(): ScheduledEvent {
    return this.#world.at(this.#dueMs, () => this.#fire());
  }

  #fire(): void {
    // A sleep has stopped the clock since the timer was set, so it waits for the rest of its time.
    if (this.#world.nowMs() < this.#dueMs) this.#event = this.#set();
    else this.#fn();
  }
}

/** Clocks, timers, random numbers and storage of one life of a node. */
export class SimWorld implements World {
  readonly random: SimRandom;
  readonly #options: SimWorldOptions;
  readonly #rate: number;
  #wallOffsetMs = 0;
  /** Total sleep of the machine, in µs. */
  #sleptUs = 0;

  constructor(options: SimWorldOptions) {
    this.#options = options;
    this.random = options.random;
    this.#rate = (1 + options.driftPpm / 1e6) / 1_000;
  }

  nowMs(): number {
    const { scheduler, grainMs = 0 } = this.#options;
    const ms = (scheduler.nowUs - this.#sleptUs) * this.#rate;
    return grainMs === 0 ? ms : Math.floor(ms / grainMs) * grainMs;
  }

  wallMs(): number {
    return WALL_ORIGIN_MS + this.#wallOffsetMs + Math.floor(this.nowMs());
  }

  /** Makes the wall clock jump, forwards or backwards. */
  stepWallClock(byMs: number): void {
    this.#wallOffsetMs += Math.round(byMs);
  }

  /** Accounts for a sleep of the machine. The wall clock jumps, and the monotonic clock stands still. */
  slept(durationUs: number): void {
    this.#sleptUs += durationUs;
    this.#wallOffsetMs += Math.round(durationUs * this.#rate);
  }

  timer(delayMs: number, fn: () => void): Timer {
    return new SimTimer(this, this.nowMs() + delayMs, fn);
  }

  /** Schedules an event at a time of this node's clock. A later sleep does not delay it. */
  at(localMs: number, run: () => void): ScheduledEvent {
    return this.#options.life.at(this.#trueUs(localMs), "timer", run);
  }

  cancel(event: ScheduledEvent): void {
    this.#options.scheduler.cancel(event);
  }

  macrotask(fn: () => void): void {
    const { scheduler, life } = this.#options;
    life.at(scheduler.nowUs, "macrotask", fn);
  }

  openLog(name: string): Promise<DurableLog> {
    const { disk, life } = this.#options;
    return disk.open(name, life);
  }

  log(level: LogLevel, message: string, fields?: Record<string, unknown>): void {
    const { scheduler, life, onLog } = this.#options;
    if (!life.alive) return;
    onLog({ timeMs: scheduler.nowUs / 1_000, node: life.node, level, message, fields });
  }

  fault(point: string): boolean {
    return this.#options.life.alive && this.#options.faultPoints.fires(point);
  }

  /** Returns the first microsecond at which this node's clock has reached that time. */
  #trueUs(localMs: number): number {
    if (localMs === Infinity) return Infinity;
    const { grainMs = 0 } = this.#options;
    const readMs = grainMs === 0 ? localMs : Math.ceil(localMs / grainMs) * grainMs;
    let timeUs = Math.ceil(readMs / this.#rate);
    while (timeUs * this.#rate < readMs) timeUs++;
    return timeUs + this.#sleptUs;
  }
}
