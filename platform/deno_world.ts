/** The actors' platform on Deno: real clocks, timers, random numbers, and logs on disk. */
import { join } from "node:path";
import { LeatError } from "../core/error.ts";
import { RandomStream } from "../core/philox.ts";
import { shownText } from "../core/shown_text.ts";
import type { DurableLog } from "../actors/runtime/durable_log.ts";
import type { LogLevel, Random, Timer, World } from "../actors/runtime/world.ts";
import { MemoryLog } from "./journal/memory_log.ts";

export interface DenoWorldOptions {
  /** The folder of durable logs. Without it (and without `openLog`) opening a log fails. */
  readonly logFolder?: string;
  /** Keeps logs in memory, for nodes that need no state after a restart. */
  readonly logsInMemory?: boolean;
  /** Opens durable logs. Default: files in `logFolder`. */
  readonly openLog?: (name: string) => Promise<DurableLog>;
  /** The lowest level that is printed; `"off"` prints nothing. Default `"info"`. */
  readonly logLevel?: LogLevel | "off";
  /** Prints a line. Default: to standard error. */
  readonly print?: (level: LogLevel, line: string) => void;
  /** The seed of random numbers, to repeat a run. Default: drawn from the system's entropy. */
  readonly seed?: bigint;
}

const LEVELS = ["debug", "info", "warn", "error", "off"] as const;

/** Names that are valid file names on every platform and cannot lead out of the folder. */
const LOG_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

/** `setTimeout` fires at once for longer delays. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1;

export class DenoWorld implements World {
  readonly random: Random;
  readonly #options: DenoWorldOptions;
  readonly #levelMin: number;
  #due: (() => void)[] = [];

  constructor(options: DenoWorldOptions = {}) {
    this.#options = options;
    this.#levelMin = LEVELS.indexOf(options.logLevel ?? "info");
    const [entropy] = crypto.getRandomValues(new BigUint64Array(1));
    this.random = randomOf(new RandomStream(options.seed ?? entropy!));
  }

  nowMs(): number {
    return performance.now();
  }

  wallMs(): number {
    return Date.now();
  }

  timer(delayMs: number, fn: () => void): Timer {
    return new DenoTimer(performance.now() + delayMs, fn);
  }

  /** Functions passed within one macrotask share one immediate, because one for each costs more. */
  macrotask(fn: () => void): void {
    this.#due.push(fn);
    if (this.#due.length === 1) setImmediate(() => this.#runDue());
  }

  async openLog(name: string): Promise<DurableLog> {
    if (!LOG_NAME.test(name)) {
      throw new LeatError(
        "invalid_argument",
        `A log is named with up to 128 letters, digits, "_", "-" and ".", not "${name}"`,
      );
    }
    const { openLog, logFolder, logsInMemory = false } = this.#options;
    if (openLog !== undefined) return await openLog(name);
    if (logsInMemory) return new MemoryLog();
    if (logFolder === undefined) {
      throw new LeatError(
        "failed_precondition",
        `Cannot open the log "${name}": this program has no folder for logs; set logFolder`,
      );
    }
    // Loaded lazily: only dispatchers have a log.
    const { openSqliteLog } = await import("./journal/sqlite_log.ts");
    return await openSqliteLog(join(logFolder, `${name}.sqlite`));
  }

  log(level: LogLevel, message: string, fields: Record<string, unknown> = {}): void {
    if (LEVELS.indexOf(level) < this.#levelMin) return;
    const parts = [new Date().toISOString(), level.toUpperCase().padEnd(5), oneLine(message)];
    for (const [key, value] of Object.entries(fields)) {
      if (value !== undefined) parts.push(`${key}=${shownText(fieldText(value))}`);
    }
    const { print = (_, line) => console.error(line) } = this.#options;
    print(level, parts.join(" "));
  }

  fault(_point: string): boolean {
    return false;
  }

  #runDue(): void {
    const due = this.#due;
    this.#due = [];
    for (let i = 0; i < due.length; i++) {
      try {
        due[i]!();
      } catch (error) {
        // Like an error in a platform callback: uncaught, without stopping the other callbacks.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/** Fires once and never early. `setTimeout` alone may round delays down, and limits them. */
class DenoTimer implements Timer {
  readonly #dueMs: number;
  readonly #fn: () => void;
  #handle: ReturnType<typeof setTimeout> | undefined;

  constructor(dueMs: number, fn: () => void) {
    this.#dueMs = dueMs;
    this.#fn = fn;
    this.#arm();
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }

  #arm(): void {
    const delayMs = Math.min(TIMEOUT_MAX_MS, Math.max(0, this.#dueMs - performance.now()));
    this.#handle = setTimeout(() => {
      if (performance.now() < this.#dueMs) this.#arm();
      else this.#fn();
    }, Math.ceil(delayMs));
  }
}

function randomOf(stream: RandomStream): Random {
  return {
    next: () => stream.next(),
    int: (n) => stream.int(n),
    hex64: () => word(stream) + word(stream),
    fork: (label) => randomOf(stream.fork(label)),
  };
}

function word(stream: RandomStream): string {
  return stream.int(2 ** 32).toString(16).padStart(8, "0");
}

function fieldText(value: unknown): string {
  if (typeof value === "string") return /^[\w./:@#-]+$/.test(value) ? value : JSON.stringify(value);
  try {
    return JSON.stringify(value, (_, item) => typeof item === "bigint" ? String(item) : item) ??
      String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

function oneLine(text: string): string {
  // An expression for a break with the space around it would take quadratic time for long spaces.
  const spaced = text.replaceAll(/\s+/g, (space) => /[\r\n]/.test(space) ? " ⏎ " : space);
  return shownText(spaced);
}
