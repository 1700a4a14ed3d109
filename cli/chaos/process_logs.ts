/**
 * What processes and readers say of themselves, in a folder that stays when a promise was broken.
 *
 * @module
 */
import { join } from "node:path";
import type { LogLevel } from "../../actors/runtime/world.ts";

/** See the module. */
export class ProcessLogs {
  readonly folder: string;
  readonly #startedMs = performance.now();
  readonly #files = new Map<string, Deno.FsFile>();
  /** Workers that are stopped in order: the dispatcher says once of each that it is gone. */
  readonly #leaving = new Set<string>();
  #hasEnded = false;
  /** Workers that a dispatcher has given up. */
  givenUp = 0;
  /** What readers were warned of. */
  warnings = 0;

  constructor() {
    this.folder = Deno.makeTempDirSync({ prefix: "leat-chaos-logs-" });
  }

  /** Writes a line down, with the seconds since the start, in the file of that process. */
  write(name: string, line: string): void {
    // A reader's node may have more to say than anybody waits for.
    if (this.#hasEnded) return;
    const file = this.#files.get(name) ?? this.#open(name);
    const seconds = ((performance.now() - this.#startedMs) / 1_000).toFixed(3).padStart(9);
    file.writeSync(new TextEncoder().encode(`${seconds} ${line}\n`));
    const [, gone] = /Worker "([^"]*)" is gone/.exec(line) ?? [];
    if (gone !== undefined && !this.#leaving.delete(gone)) this.givenUp++;
  }

  /** Writes down what a reader's node says. What is more than a warning is shown as well. */
  readonly heardReader = (level: LogLevel, line: string): void => {
    this.write("readers", line);
    if (level === "warn") this.warnings++;
    else console.error(line);
  };

  /** A worker is stopped in order from now on, or one of its name is started. */
  leaves(name: string, isLeaving: boolean): void {
    if (isLeaving) this.#leaving.add(name);
    else this.#leaving.delete(name);
  }

  /** Closes the files. @param keeps Whether they are wanted. */
  async end(keeps: boolean): Promise<void> {
    this.#hasEnded = true;
    for (const file of this.#files.values()) file.close();
    this.#files.clear();
    if (!keeps) await Deno.remove(this.folder, { recursive: true });
  }

  #open(name: string): Deno.FsFile {
    const file = Deno.openSync(join(this.folder, `${name}.log`), { create: true, append: true });
    this.#files.set(name, file);
    return file;
  }
}
