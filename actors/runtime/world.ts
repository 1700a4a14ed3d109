/** What actors use in place of global clocks, timers, random numbers and logs. A simulator replaces it. */
import type { DurableLog } from "./durable_log.ts";

export interface Timer {
  /** Prevents the timer from firing; does nothing once it has. */
  cancel(): void;
}

/** A source of random numbers. Draws from one fork never affect those of another. */
export interface Random {
  next(): number;
  /** An integer in [0, n). */
  int(n: number): number;
  /** 64 bits as 16 hexadecimal digits. */
  hex64(): string;
  /** An independent named source. The same label gives the same source each time. */
  fork(label: string): Random;
}

/** The severity of a log line. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** What actors see of the machine. */
export interface World {
  /** Monotonic time in ms, from an arbitrary origin. */
  nowMs(): number;
  /** Wall-clock time in ms since 1970, for display and journals; may jump. */
  wallMs(): number;
  /** Calls `fn` once, after at least `delayMs`. */
  timer(delayMs: number, fn: () => void): Timer;
  /** Calls `fn` in a later macrotask, in the order of calls. */
  macrotask(fn: () => void): void;
  readonly random: Random;
  /** Opens the durable log of that name, creating it if needed. */
  openLog(name: string): Promise<DurableLog>;
  /** A line for the operator. `fields` are plain data. */
  log(level: LogLevel, message: string, fields?: Record<string, unknown>): void;
  /** True when the simulator wants the named fault to happen now; always false in production. */
  fault(point: string): boolean;
}
