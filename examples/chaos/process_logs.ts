/**
 * What processes say of themselves, in a folder that stays when a promise was broken.
 *
 * @module
 */
import { join } from "node:path";

/** See the module. */
export class ProcessLogs {
  readonly folder: string;
  readonly #startedMs = performance.now();
  readonly #files = new Map<string, Deno.FsFile>();
  /** Workers that a dispatcher has given up. */
  givenUp = 0;

  constructor() {
    this.folder = Deno.makeTempDirSync({ prefix: "leat-chaos-logs-" });
  }

  /** Writes a line down, with the seconds since the start, in the file of that process. */
  write(name: string, line: string): void {
    const file = this.#files.get(name) ?? this.#open(name);
    const seconds = ((performance.now() - this.#startedMs) / 1_000).toFixed(3).padStart(9);
    file.writeSync(new TextEncoder().encode(`${seconds} ${line}\n`));
    if (/Worker "[^"]*" is gone/.test(line)) this.givenUp++;
  }

  /** Closes the files. @param keeps Whether they are wanted. */
  async end(keeps: boolean): Promise<void> {
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
