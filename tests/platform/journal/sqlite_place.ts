/** A folder with a SQLite log, and ways to damage it. */
import type { DurableLog } from "../../../actors/runtime/durable_log.ts";
import { LeatError } from "../../../core/error.ts";
import { openSqliteLog } from "../../../platform/journal/sqlite_log.ts";
import type { LogPlace } from "../../lib/log_conformance.ts";

/** Simulates crashes by opening a copy of the files as they are on disk while the log is open. */
export class SqlitePlace implements LogPlace {
  readonly #folder = Deno.makeTempDirSync({ prefix: "leat-log-" });
  readonly #open: DurableLog[] = [];
  #crashes = 0;

  get #path(): string {
    return `${this.#folder}/${this.#crashes}.log`;
  }

  async open(): Promise<DurableLog> {
    const log = await openSqliteLog(this.#path);
    this.#open.push(log);
    return log;
  }

  async crash(): Promise<void> {
    const old = this.#path;
    this.#crashes++;
    for (const suffix of ["", "-wal"]) {
      try {
        Deno.copyFileSync(old + suffix, this.#path + suffix);
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    }
    await this.#closeAll();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closeAll();
    await Deno.remove(this.#folder, { recursive: true });
  }

  async #closeAll(): Promise<void> {
    for (const log of this.#open.splice(0)) await log.close();
  }
}

/** A closed log of 200 records of 1,000 bytes each. */
export async function filledLog(path: string): Promise<void> {
  const log = await openSqliteLog(path);
  for (let i = 0; i < 200; i++) log.append(new Uint8Array(1000).fill(i));
  await log.close();
}

/** Uses a folder in memory, if there is one. */
export async function withFastFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ dir: "/dev/shm", prefix: "leat-log-" })
    .catch(() => Deno.makeTempDir({ prefix: "leat-log-" }));
  try {
    await body(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** The files of a log that was never closed: ten records, each durable before the next. */
export async function abandonedLog(path: string): Promise<Map<string, Uint8Array>> {
  const log = await openSqliteLog(path);
  for (let i = 0; i < 10; i++) {
    log.append(new Uint8Array(300).fill(i));
    await log.sync();
  }
  const files = new Map<string, Uint8Array>();
  for (const suffix of ["", "-wal", "-mark"]) files.set(suffix, await Deno.readFile(path + suffix));
  await log.close();
  return files;
}

/** Restores these files and opens them: returns what is read, or the error. */
export async function reopened(
  path: string,
  files: ReadonlyMap<string, Uint8Array>,
): Promise<number[] | LeatError> {
  for (const suffix of ["", "-wal", "-mark", "-wal-damaged"]) {
    await Deno.remove(path + suffix).catch(() => {});
  }
  for (const [suffix, bytes] of files) await Deno.writeFile(path + suffix, bytes);
  try {
    const log = await openSqliteLog(path);
    const { records } = await log.read();
    await log.close();
    return records.map((record) => record[0]!);
  } catch (error) {
    return LeatError.from(error);
  }
}
