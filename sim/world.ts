/**
 * The world of the actors on one simulated node, for one life of it.
 *
 * @module
 */
import type { DurableLog } from "../actors/runtime/durable_log.ts";
import type { LogLevel, Timer, World } from "../actors/runtime/world.ts";
import type { SimDisk } from "./disk.ts";
import type { FaultPoints } from "./fault_points.ts";
import type { Life } from "./life.ts";
import type { SimRandom } from "./random.ts";
import type { ScheduledEvent, Scheduler } from "./scheduler.ts";

/** 2026-01-01, when every run begins. */
const WALL_ORIGIN_MS = 1_767_225_600_000;

/** A line that an actor has written for its operator. */
export interface SimLogLine {
  readonly timeMs: number;
  readonly node: string;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Record<string, unknown> | undefined;
}

/** What a {@linkcode SimWorld} is made of. */
export interface SimWorldOptions {
  readonly scheduler: Scheduler;
  readonly life: Life;
  readonly random: SimRandom;
  readonly disk: SimDisk;
  readonly faultPoints: FaultPoints;
  /** How much faster than true time the node's clocks run, in parts per million. */
  readonly driftPpm: number;
  /** In what steps its monotonic clock goes on. Default 0: in the finest. */
  readonly grainMs?: number;
  readonly onLog: (line: SimLogLine) => void;
}

/** One of many: nearly all of them are cancelled. */
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
    // Before a sleep it was due that much earlier.
    if (this.#world.nowMs() < this.#dueMs) this.#event = this.#set();
    else this.#fn();
  }
}

/** See the module. */
export class SimWorld implements World {
  readonly random: SimRandom;
  readonly #options: SimWorldOptions;
  readonly #rate: number;
  #wallOffsetMs = 0;
  /** For how long the machine has slept. */
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

  /** The wall clock jumps, forwards or backwards. */
  stepWallClock(byMs: number): void {
    this.#wallOffsetMs += Math.round(byMs);
  }

  /** The machine will have slept for so long when next something happens on it. */
  slept(durationUs: number): void {
    this.#sleptUs += durationUs;
    this.#wallOffsetMs += Math.round(durationUs * this.#rate);
  }

  timer(delayMs: number, fn: () => void): Timer {
    return new SimTimer(this, this.nowMs() + delayMs, fn);
  }

  /** Schedules an event for when this node's clock has reached that time, if the machine does not sleep. */
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

  /** The first microsecond at which this node's clock has reached that time. */
  #trueUs(localMs: number): number {
    if (localMs === Infinity) return Infinity;
    const { grainMs = 0 } = this.#options;
    const readMs = grainMs === 0 ? localMs : Math.ceil(localMs / grainMs) * grainMs;
    let timeUs = Math.ceil(readMs / this.#rate);
    while (timeUs * this.#rate < readMs) timeUs++;
    return timeUs + this.#sleptUs;
  }
}
