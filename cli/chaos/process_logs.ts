/** Writes the logs of processes and readers to a folder, which is kept if a guarantee was broken. */
import { join } from "node:path";
import { makeTemporaryFolder } from "../lib/folders.ts";
import type { LogLevel } from "../../actors/runtime/world.ts";

export class ProcessLogs {
  readonly folder: string;
  readonly #startedMs = performance.now();
  readonly #files = new Map<string, Deno.FsFile>();
  /** Workers that are being stopped. The dispatcher may log once that each is gone. */
  readonly #stopping = new Set<string>();
  #hasEnded = false;
  /** How often the dispatcher has timed out a worker. */
  timedOut = 0;
  /** How many warnings readers have logged. */
  warnings = 0;

  constructor() {
    this.folder = makeTemporaryFolder("leat-chaos-logs-");
  }

  /** Writes a line, with the seconds since the start, to the file of a process. */
  write(name: string, line: string): void {
    // A reader's node may still log after the end.
    if (this.#hasEnded) return;
    const file = this.#files.get(name) ?? this.#open(name);
    const seconds = ((performance.now() - this.#startedMs) / 1_000).toFixed(3).padStart(9);
    file.writeSync(new TextEncoder().encode(`${seconds} ${line}\n`));
    const [, worker] = /Worker "([^"]*)" is gone/.exec(line) ?? [];
    if (worker !== undefined && !this.#stopping.delete(worker)) this.timedOut++;
  }

  /** Writes a log line of a reader's node. Errors are printed as well. */
  readonly logReader = (level: LogLevel, line: string): void => {
    this.write("readers", line);
    if (level === "warn") this.warnings++;
    else console.error(line);
  };

  /** Records that a worker is being stopped, or that a worker with this name is starting. */
  setStopping(name: string, isStopping: boolean): void {
    if (isStopping) this.#stopping.add(name);
    else this.#stopping.delete(name);
  }

  /** Closes the files, and removes them unless `keeps`. */
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
