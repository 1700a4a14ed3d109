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
import type { Scheduler } from "./scheduler.ts";

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
  readonly onLog: (line: SimLogLine) => void;
}

/** See the module. */
export class SimWorld implements World {
  readonly random: SimRandom;
  readonly #options: SimWorldOptions;
  readonly #rate: number;
  #wallOffsetMs = 0;

  constructor(options: SimWorldOptions) {
    this.#options = options;
    this.random = options.random;
    this.#rate = (1 + options.driftPpm / 1e6) / 1_000;
  }

  nowMs(): number {
    return this.#options.scheduler.nowUs * this.#rate;
  }

  wallMs(): number {
    return WALL_ORIGIN_MS + this.#wallOffsetMs + Math.floor(this.nowMs());
  }

  /** The wall clock jumps, forwards or backwards. */
  stepWallClock(byMs: number): void {
    this.#wallOffsetMs += Math.round(byMs);
  }

  timer(delayMs: number, fn: () => void): Timer {
    const { scheduler, life } = this.#options;
    const event = life.at(this.#trueUs(this.nowMs() + delayMs), "timer", fn);
    return { cancel: () => scheduler.cancel(event) };
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
    let timeUs = Math.ceil(localMs / this.#rate);
    while (timeUs * this.#rate < localMs) timeUs++;
    return timeUs;
  }
}
