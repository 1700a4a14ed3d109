/** The logs of processes and readers, in a folder that is kept if a guarantee was broken. */
import { join } from "node:path";
import type { LogLevel } from "../../actors/runtime/world.ts";

export class ProcessLogs {
  readonly folder: string;
  readonly #startedMs = performance.now();
  readonly #files = new Map<string, Deno.FsFile>();
  /** Workers that are being stopped. The dispatcher may report each as lost once. */
  readonly #leaving = new Set<string>();
  #hasEnded = false;
  /** How often the dispatcher has timed out a worker. */
  givenUp = 0;
  /** How many warnings readers have logged. */
  warnings = 0;

  constructor() {
    this.folder = Deno.makeTempDirSync({ prefix: "leat-chaos-logs-" });
  }

  /** Writes a line, with the seconds since the start, to the file of that process. */
  write(name: string, line: string): void {
    // A reader's node may still log after the end.
    if (this.#hasEnded) return;
    const file = this.#files.get(name) ?? this.#open(name);
    const seconds = ((performance.now() - this.#startedMs) / 1_000).toFixed(3).padStart(9);
    file.writeSync(new TextEncoder().encode(`${seconds} ${line}\n`));
    const [, gone] = /Worker "([^"]*)" is gone/.exec(line) ?? [];
    if (gone !== undefined && !this.#leaving.delete(gone)) this.givenUp++;
  }

  /** Writes a log line of a reader's node. Errors are printed as well. */
  readonly heardReader = (level: LogLevel, line: string): void => {
    this.write("readers", line);
    if (level === "warn") this.warnings++;
    else console.error(line);
  };

  /** Notes that a worker is being stopped, or that one with its name is starting. */
  leaves(name: string, isLeaving: boolean): void {
    if (isLeaving) this.#leaving.add(name);
    else this.#leaving.delete(name);
  }

  /** Closes the files. @param keeps Whether to keep them. */
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
