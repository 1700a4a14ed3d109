/**
 * Writes the fixtures next to itself: `deno run -P tests/formats/write.ts`. They may change only
 * when a format changes on purpose.
 */
import { openSqliteLog } from "../../platform/journal/sqlite_log.ts";
import { makeCheckpoints } from "./checkpoints.ts";
import { makeJournals } from "./journals.ts";

const journals = await makeJournals();
await write("journals.json", journals);
await write("checkpoints.json", await makeCheckpoints());

// The journal file, as a dispatcher leaves it when it ends.
const { pathname } = new URL("journal.sqlite", import.meta.url);
await Deno.remove(pathname).catch(() => {});
const log = await openSqliteLog(pathname);
const { snapshot, records } = journals.find(({ snapshot }) => snapshot !== null)!;
await log.compact(Uint8Array.fromBase64(snapshot!));
for (const record of records) log.append(Uint8Array.fromBase64(record));
await log.close();
await Deno.remove(`${pathname}-mark`).catch(() => {});

async function write(name: string, value: unknown): Promise<void> {
  await Deno.writeTextFile(new URL(name, import.meta.url), `${JSON.stringify(value, null, 2)}\n`);
}
