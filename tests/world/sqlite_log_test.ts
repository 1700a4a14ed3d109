/**
 * The log on SQLite: the conformance suite, and what only files can suffer.
 *
 * @module
 */
import type { DurableLog } from "../../actors/runtime/durable_log.ts";
import { LeatError } from "../../core/error.ts";
import { openSqliteLog } from "../../world/sqlite_log.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { type LogPlace, testDurableLog } from "../lib/log_conformance.ts";

/** Crashes by going on with a copy of the files as they lie on the disk while the log is open. */
class SqlitePlace implements LogPlace {
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

testDurableLog("SqliteLog", () => Promise.resolve(new SqlitePlace()));

async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "leat-log-" });
  try {
    await body(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A closed log of 200 records of 1,000 bytes each. */
async function filledLog(path: string): Promise<void> {
  const log = await openSqliteLog(path);
  for (let i = 0; i < 200; i++) log.append(new Uint8Array(1000).fill(i));
  await log.close();
}

Deno.test("openSqliteLog refuses a second opener and names the file", () =>
  withFolder(async (folder) => {
    const path = `${folder}/a.log`;
    const log = await openSqliteLog(path);
    const error = await assertRejects(() => openSqliteLog(path), LeatError);
    assertEquals(error.code, "failed_precondition");
    assertStringIncludes(error.message, path);
    log.append(new Uint8Array([1]));
    await log.close();
    const again = await openSqliteLog(path);
    assertEquals((await again.read()).records.length, 1);
    await again.close();
  }));

Deno.test("openSqliteLog creates the folder and leaves nothing but the log there", () =>
  withFolder(async (folder) => {
    const log = await openSqliteLog(`${folder}/deep/down/a.log`);
    await log.close();
    const names = [...Deno.readDirSync(`${folder}/deep/down`)].map(({ name }) => name);
    assertEquals(names, ["a.log"]);
  }));

Deno.test("openSqliteLog answers a damaged, truncated, emptied or foreign file with data_loss", () =>
  withFolder(async (folder) => {
    const path = `${folder}/a.log`;
    await filledLog(path);
    const whole = await Deno.readFile(path);
    const damagedRow = whole.slice();
    damagedRow[damagedRow.findIndex((byte, i) => byte === 77 && damagedRow[i + 500] === 77)]! ^= 1;
    const damagedTree = whole.slice();
    damagedTree.fill(0xff, 3 * 4096, 4 * 4096);
    const damages: Record<string, Uint8Array> = {
      "a flipped bit in a record": damagedRow,
      "a page overwritten": damagedTree,
      "the second half gone": whole.slice(0, whole.length / 2),
      "everything gone": new Uint8Array(0),
      "not a database": new TextEncoder().encode("no log at all ".repeat(100)),
    };
    for (const [damage, bytes] of Object.entries(damages)) {
      await Deno.writeFile(path, bytes);
      const error = await assertRejects(() => openSqliteLog(path), LeatError);
      assertEquals(error.code, "data_loss", `${damage}: ${error.message}`);
      assertStringIncludes(error.message, path);
      assertStringIncludes(error.message, "begin anew");
    }
  }));

Deno.test("openSqliteLog answers a lost file whose write-ahead file is left with data_loss", () =>
  withFolder(async (folder) => {
    const path = `${folder}/a.log`;
    await Deno.writeFile(`${path}-wal`, new Uint8Array(100));
    const error = await assertRejects(() => openSqliteLog(path), LeatError);
    assertEquals(error.code, "data_loss");
  }));

Deno.test("openSqliteLog says permission_denied where it may not write", async () => {
  const error = await assertRejects(() => openSqliteLog("/proc/leat/a.log"), LeatError);
  assertEquals(error.code, "permission_denied");
  assertStringIncludes(error.message, "/proc/leat/a.log");
});

Deno.test("openSqliteLog names the path when its folder is a file", () =>
  withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "");
    const error = await assertRejects(() => openSqliteLog(`${folder}/file/a.log`), LeatError);
    assertStringIncludes(error.message, `${folder}/file/a.log`);
  }));

Deno.test("a full disk is resource_exhausted, and the log is unusable afterwards", () =>
  withFolder(async (folder) => {
    const path = `${folder}/a.log`;
    let log = await openSqliteLog(path, { bytesMax: 64 * 1024 });
    log.append(new Uint8Array(1000).fill(1));
    await log.sync();
    log.append(new Uint8Array(100_000));
    const overlapping = log.sync();
    const error = await assertRejects(() => log.sync(), LeatError);
    await assertRejects(() => overlapping, LeatError);
    assertEquals(error.code, "resource_exhausted");
    assertStringIncludes(error.message, path);
    for (const use of [() => log.sync(), () => log.compact(new Uint8Array(1)), () => log.read()]) {
      assertEquals((await assertRejects(use, LeatError)).code, "resource_exhausted");
    }
    await log.close();
    log = await openSqliteLog(path);
    assertEquals((await log.read()).records.map((record) => record.length), [1000]);
    await log.close();
  }));

Deno.test("compaction keeps the file from growing with the records ever appended", () =>
  withFolder(async (folder) => {
    const path = `${folder}/a.log`;
    const log = await openSqliteLog(path);
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 200; i++) log.append(new Uint8Array(1000));
      await log.sync();
      await log.compact(new Uint8Array(100));
    }
    await log.close();
    const { size } = await Deno.stat(path);
    assert(size < 2 * 200 * 1200, `${size} bytes for 200 records of 1,000 bytes`);
  }));

Deno.test("what a process said was durable is there after SIGKILL", () =>
  withFolder(async (folder) => {
    const path = `${folder}/a.log`;
    let said = 0;
    {
      await using child = startChild("tests/world/fixture_log_writer.ts", { args: [path] });
      said = Number((await child.line(/^durable (\d{3,})$/))[1]);
      child.kill("SIGKILL");
      assertEquals((await child.status).signal, "SIGKILL");
      for (const [, number] of child.stdout.text.matchAll(/^durable (\d+)\n/gm)) {
        said = Math.max(said, Number(number));
      }
    }
    const log = await openSqliteLog(path);
    const { records } = await log.read();
    assert(records.length >= said, `${records.length} records of ${said} that were durable`);
    records.forEach((record, i) =>
      assertEquals(new DataView(record.slice().buffer).getUint32(0), i + 1)
    );
    await log.close();
  }));
