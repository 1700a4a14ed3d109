/** The log on SQLite: the conformance suite, and failures that only files have. */

import { LeatError } from "../../../core/error.ts";
import { openSqliteLog } from "../../../platform/journal/sqlite_log.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { startChild } from "../../lib/child.ts";
import { testDurableLog } from "../../lib/log_conformance.ts";
import { inFolder } from "../../lib/temp_folder.ts";
import { abandonedLog, filledLog, reopened, SqlitePlace, withFastFolder } from "./sqlite_place.ts";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";

/** Rows that never end. */
const ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)";

testDurableLog("SqliteLog", () => Promise.resolve(new SqlitePlace()));

Deno.test("openSqliteLog explains why a path cannot hold a log", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "");
    for (const path of [`${folder}/file/a.log`, `${folder}/file/below/a.log`]) {
      const error = await assertRejects(() => openSqliteLog(path), LeatError, "below a file");
      assertEquals(error.code, "invalid_argument");
      assertStringIncludes(error.message, path);
    }
    const long = `${folder}/${"long".repeat(100)}/a.log`;
    const error = await assertRejects(() => openSqliteLog(long), LeatError, "too long");
    assertEquals(error.code, "invalid_argument");
  }));

Deno.test("openSqliteLog refuses a second opener and names the file", () =>
  inFolder(async (folder) => {
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

Deno.test("openSqliteLog creates the folder, and only the log in it", () =>
  inFolder(async (folder) => {
    const log = await openSqliteLog(`${folder}/deep/down/a.log`);
    await log.close();
    const names = [...Deno.readDirSync(`${folder}/deep/down`)].map(({ name }) => name);
    assertEquals(names, ["a.log"]);
  }));

Deno.test("openSqliteLog answers a damaged, truncated, emptied or foreign file with data_loss", () =>
  inFolder(async (folder) => {
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
      assertStringIncludes(error.message, "start an empty");
    }
  }));

Deno.test("openSqliteLog answers a lost file with a leftover write-ahead file with data_loss", () =>
  inFolder(async (folder) => {
    const path = `${folder}/a.log`;
    await Deno.writeFile(`${path}-wal`, new Uint8Array(100));
    const error = await assertRejects(() => openSqliteLog(path), LeatError);
    assertEquals(error.code, "data_loss");
  }));

const ALL = Array.from({ length: 10 }, (_, i) => i);

Deno.test("openSqliteLog runs no SQL of whoever made its file: other tables, views and triggers are data_loss", () =>
  inFolder(async (folder) => {
    const path = `${folder}/a.log`;
    const batch = "first INTEGER PRIMARY KEY, count INTEGER NOT NULL, crc INTEGER NOT NULL, " +
      "body BLOB NOT NULL";
    for (
      const sql of [
        `DROP TABLE batch; CREATE VIEW batch AS ${ENDLESS} SELECT x AS first, 1 AS count, 0 AS crc, zeroblob(1) AS body FROM c WHERE x < 0`,
        `CREATE TRIGGER t AFTER INSERT ON batch BEGIN INSERT INTO snapshot ${ENDLESS} SELECT x, 1, 0, '' FROM c; END`,
        `DROP TABLE batch; CREATE TABLE batch (${batch}, more BLOB AS (hex(zeroblob(1000000000)))) STRICT`,
        `DROP TABLE batch; CREATE VIRTUAL TABLE batch USING fts5(first, count, crc, body)`,
        `CREATE INDEX more ON batch (hex(body))`,
        `CREATE TABLE more (a)`,
        `DROP TABLE batch`,
      ]
    ) {
      await filledLog(path);
      const database = new DatabaseSync(path);
      database.exec(sql);
      database.close();
      const error = await assertRejects(() => openSqliteLog(path), LeatError, "its tables");
      assertEquals(error.code, "data_loss");
      assertStringIncludes(error.message, path);
      await Deno.remove(path);
    }
  }));

Deno.test("a write-ahead file cut off or damaged anywhere is data_loss with file and remedy, or nothing is missing", () =>
  withFastFolder(async (folder) => {
    const path = `${folder}/a.log`;
    const files = await abandonedLog(path);
    const wal = files.get("-wal")!;
    for (let at = 0; at < wal.length; at += 499) {
      const flipped = wal.slice();
      flipped[at]! ^= 0x10;
      for (const damaged of [wal.slice(0, at), flipped]) {
        const outcome = await reopened(path, new Map(files).set("-wal", damaged));
        if (!(outcome instanceof LeatError)) {
          assertEquals(outcome, ALL, `at byte ${at}`);
          continue;
        }
        assertEquals(outcome.code, "data_loss", `at byte ${at}: ${outcome.message}`);
        assertStringIncludes(outcome.message, path);
        assertStringIncludes(outcome.message, "start an empty");
      }
    }
    files.delete("-wal");
    const gone = await reopened(path, files);
    assert(gone instanceof LeatError && gone.code === "data_loss", String(gone));
  }));

Deno.test("a write-ahead file that is not whole is kept, and without its mark what is left of it is a prefix", () =>
  withFastFolder(async (folder) => {
    const path = `${folder}/a.log`;
    const files = await abandonedLog(path);
    const wal = files.get("-wal")!;
    const half = wal.slice(0, wal.length / 2);
    const refused = await reopened(path, new Map(files).set("-wal", half));
    assert(refused instanceof LeatError);
    assertStringIncludes(refused.message, "a.log-mark");
    assertEquals(await Deno.readFile(`${path}-wal-damaged`), half);
    const again = await openSqliteLog(path).then(() => undefined, LeatError.from);
    assertEquals(again?.code, "data_loss", "it stays refused");
    files.delete("-mark");
    for (let length = 0; length <= wal.length; length += 499) {
      const outcome = await reopened(path, new Map(files).set("-wal", wal.slice(0, length)));
      if (outcome instanceof LeatError) throw outcome;
      assertEquals(outcome, ALL.slice(0, outcome.length), `${length} bytes`);
    }
  }));

Deno.test("a log file cut off anywhere is data_loss with file and remedy", () =>
  withFastFolder(async (folder) => {
    const path = `${folder}/a.log`;
    await filledLog(path);
    const whole = await Deno.readFile(path);
    for (let length = 0; length < whole.length; length += 1_021) {
      const outcome = await reopened(path, new Map([["", whole.slice(0, length)]]));
      assert(outcome instanceof LeatError, `${length} of ${whole.length} bytes: opened`);
      assertEquals(outcome.code, "data_loss", `${length} bytes: ${outcome.message}`);
      assertStringIncludes(outcome.message, path);
      assertStringIncludes(outcome.message, "start an empty");
    }
  }));

Deno.test("a mark that is behind, torn or missing does not prevent opening the log", () =>
  withFastFolder(async (folder) => {
    const path = `${folder}/a.log`;
    const files = await abandonedLog(path);
    const mark = files.get("-mark")!;
    const other = await abandonedLog(`${folder}/b.log`);
    assertEquals(mark, other.get("-mark")!);
    for (const torn of [mark.slice(0, 5), new Uint8Array(0), new Uint8Array(mark.length)]) {
      assertEquals(await reopened(path, new Map(files).set("-mark", torn)), ALL);
    }
    const early = await openSqliteLog(`${folder}/c.log`);
    early.append(new Uint8Array(1));
    await early.sync();
    const behind = await Deno.readFile(`${folder}/c.log-mark`);
    await early.close();
    assertEquals(await reopened(path, new Map(files).set("-mark", behind)), ALL);
    files.delete("-mark");
    assertEquals(await reopened(path, files), ALL);
  }));

Deno.test("an older copy of a log in the place of a newer one is noticed", () =>
  withFastFolder(async (folder) => {
    const path = `${folder}/a.log`;
    await filledLog(path);
    const old = await Deno.readFile(path);
    const log = await openSqliteLog(path);
    log.append(new Uint8Array(1));
    await log.compact(new Uint8Array(10));
    log.append(new Uint8Array(1));
    await log.sync();
    const mark = await Deno.readFile(`${path}-mark`);
    await log.close();
    const outcome = await reopened(path, new Map([["", old], ["-mark", mark]]));
    assert(outcome instanceof LeatError, String(outcome));
    assertStringIncludes(outcome.message, "holds 200 records, but 202 were written");
  }));

Deno.test("openSqliteLog answers permission_denied for a file that it may not write", async () => {
  const error = await assertRejects(() => openSqliteLog("/proc/leat/a.log"), LeatError);
  assertEquals(error.code, "permission_denied");
  assertStringIncludes(error.message, "/proc/leat/a.log");
});

Deno.test("openSqliteLog names the path when its folder is a file", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "");
    const error = await assertRejects(() => openSqliteLog(`${folder}/file/a.log`), LeatError);
    assertStringIncludes(error.message, `${folder}/file/a.log`);
  }));

Deno.test("a full disk is resource_exhausted, and pending records are written once there is space", () =>
  inFolder(async (folder) => {
    const path = `${folder}/a.log`;
    let bytesMax = 64 * 1024;
    let log = await openSqliteLog(path, { bytesMax: () => bytesMax });
    log.append(new Uint8Array(1000).fill(1));
    await log.sync();
    log.append(new Uint8Array(100_000).fill(2));
    const overlapping = assertRejects(() => log.sync(), LeatError);
    const error = await assertRejects(() => log.sync(), LeatError);
    await overlapping;
    assertEquals(error.code, "resource_exhausted");
    assertStringIncludes(error.message, path);
    assertStringIncludes(error.message, "make room");
    log.append(new Uint8Array(10).fill(3));
    for (const use of [() => log.sync(), () => log.compact(new Uint8Array(200_000))]) {
      assertEquals((await assertRejects(use, LeatError)).code, "resource_exhausted");
    }
    const lengths = async () => (await log.read()).records.map(({ length }) => length);
    assertEquals(await lengths(), [1000]);
    bytesMax = Infinity;
    await log.sync();
    assertEquals(await lengths(), [1000, 100_000, 10]);
    await log.close();
    log = await openSqliteLog(path);
    assertEquals(await lengths(), [1000, 100_000, 10]);
    await log.close();
  }));

Deno.test("a log that is closed on a full disk keeps its durable records", () =>
  inFolder(async (folder) => {
    const path = `${folder}/a.log`;
    let log = await openSqliteLog(path, { bytesMax: () => 64 * 1024 });
    log.append(new Uint8Array(1000));
    await log.sync();
    log.append(new Uint8Array(100_000));
    const error = await assertRejects(() => log.close(), LeatError);
    assertEquals(error.code, "resource_exhausted");
    log = await openSqliteLog(path);
    assertEquals((await log.read()).records.map(({ length }) => length), [1000]);
    await log.close();
  }));

Deno.test("compaction bounds the file, however many records were ever appended", () =>
  inFolder(async (folder) => {
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
  inFolder(async (folder) => {
    const path = `${folder}/a.log`;
    let said = 0;
    {
      await using child = startChild("tests/platform/journal/fixture_log_writer.ts", {
        args: [path],
      });
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

Deno.test("a compaction returns the space of records and the previous snapshot to the disk", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/large.log`;
    const log = await openSqliteLog(path);
    const bytesNow = () =>
      ["", "-wal"].reduce((sum, suffix) => sum + Deno.statSync(path + suffix).size, 0);
    const record = new Uint8Array(30 << 20);
    const snapshot = new Uint8Array(60 << 20).fill(1);
    for (let round = 0; round < 3; round++) {
      log.append(record);
      await log.sync();
      log.append(record);
      await log.compact(snapshot);
      assert(bytesNow() < 100 << 20, `${bytesNow()} bytes after compaction ${round}`);
    }
    await log.compact(new Uint8Array(1));
    assert(bytesNow() < 20 << 20, `${bytesNow()} bytes for a snapshot of one`);
    await log.close();
    const again = await openSqliteLog(path);
    assertEquals((await again.read()).snapshot, new Uint8Array(1));
    await again.close();
  });
});

Deno.test({
  name: "an exhausted quota is resource_exhausted like a full disk, and written records stay",
  ignore: Deno.build.os !== "linux",
  fn: () =>
    inFolder(async (folder) => {
      const path = `${folder}/a.log`;
      const lines = await linesOf("../sandbox/fixture_used_up_quota.ts", path);
      const [first, second, third, file] = lines;
      assertEquals(first, "written");
      for (const failed of [second, third]) {
        assertStringIncludes(failed!, `resource_exhausted: ${path}`);
        assertStringIncludes(failed!, "make room");
      }
      assertStringIncludes(file!, `resource_exhausted: Cannot write ${path}-other`);
      const log = await openSqliteLog(path);
      assertEquals((await log.read()).records.map(({ length }) => length), [1_000]);
      await log.close();
    }),
});

Deno.test({
  name: "a log whose mark cannot be written is unusable, and what it holds is there when reopened",
  ignore: Deno.build.os !== "linux",
  fn: () =>
    inFolder(async (folder) => {
      const path = `${folder}/a.log`;
      const [first, second] = await linesOf("./fixture_failing_mark.ts", path);
      assertStringIncludes(first!, `data_loss: ${path} could not be read or written`);
      assertStringIncludes(second!, `data_loss: ${path} is unusable since a write failed`);
      const log = await openSqliteLog(path);
      assertEquals((await log.read()).records, [new Uint8Array([7])]);
      await log.close();
    }),
});

/** What a fixture prints that filters its own system calls. */
async function linesOf(fixture: string, path: string): Promise<string[]> {
  const program = fileURLToPath(import.meta.resolve(fixture));
  const flags = ["--quiet", "--cached-only", "--allow-ffi", "--allow-read", "--allow-write"];
  const { success, stdout, stderr } = await new Deno.Command("deno", {
    args: ["run", ...flags, program, path],
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout).trim().split("\n");
}
