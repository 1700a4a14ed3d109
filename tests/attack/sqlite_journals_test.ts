/**
 * Whoever may write beside a database of SQLite leaves a journal there that names a file of its
 * reader. SQLite takes that for a file of its own, and removes it.
 */
import { LeatError } from "../../core/error.ts";
import { openSqliteLog } from "../../platform/journal/sqlite_log.ts";
import { openSqliteMetrics } from "../../platform/offload/sqlite_metrics.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { inFolder } from "../lib/temp_folder.ts";
import { link } from "../platform/sandbox/sandbox_lib.ts";

const MAGIC = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
const HEAD_BYTES = 512;

/** A journal without pages, of a transaction over several databases (https://sqlite.org/fileformat.html). */
function journalNaming(victim: string): Uint8Array {
  const name = new TextEncoder().encode(victim);
  const journal = new Uint8Array(HEAD_BYTES + 4 + name.length + 8 + MAGIC.length);
  const view = new DataView(journal.buffer);
  journal.set(MAGIC);
  view.setUint32(16, 1);
  view.setUint32(20, HEAD_BYTES);
  view.setUint32(24, 4_096);
  journal.set(name, HEAD_BYTES + 4);
  const at = HEAD_BYTES + 4 + name.length;
  view.setUint32(at, name.length);
  view.setUint32(at + 4, name.reduce((sum, byte) => sum + byte, 0));
  journal.set(MAGIC, at + 8);
  return journal;
}

const OPENERS: readonly ((path: string) => Promise<void>)[] = [
  (path) => Promise.try(() => openSqliteMetrics(path)[Symbol.dispose]()),
  async (path) => await (await openSqliteLog(path)).close(),
];

Deno.test("no journal beside a metric store or a log makes its reader remove another file", () =>
  inFolder(async (folder) => {
    const victim = `${folder}/victim`;
    for (const [i, open] of OPENERS.entries()) {
      const [path, alias] = [`${folder}/database-${i}`, `${folder}/link-${i}`];
      await open(path);
      await link(path, alias);
      await Deno.writeTextFile(victim, "precious");
      await Deno.writeFile(`${path}-journal`, journalNaming(victim));
      for (const name of [path, alias]) {
        const error = await assertRejects(() => open(name), LeatError);
        assertStringIncludes(error.message, "-journal does not belong to a");
      }
      assertEquals(await Deno.readTextFile(victim), "precious");
      // What a program left that was killed while it wrote does no harm.
      await Deno.writeFile(`${path}-journal`, new Uint8Array(HEAD_BYTES));
      await open(path);
    }
  }));
