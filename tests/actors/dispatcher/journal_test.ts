/** The journal, on a log whose disk is full for a while. */
import { LoggedJournal } from "../../../actors/dispatcher/journal/journal.ts";
import type { JournalRecord } from "../../../actors/dispatcher/journal/records.ts";
import type { DurableLog } from "../../../actors/runtime/durable_log.ts";
import { LeatError } from "../../../core/error.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("a compaction after a full disk has each record in the snapshot or after it", async () => {
  const freed = Promise.withResolvers<void>();
  const syncs = [
    () => Promise.reject(new LeatError("resource_exhausted", "the disk is full")),
    () => freed.promise,
  ];
  const written: string[] = [];
  let applied = 0;
  const log: DurableLog = {
    read: () => Promise.resolve({ snapshot: undefined, records: [] }),
    append: () => void written.push("records"),
    sync: () => syncs.shift()?.() ?? Promise.resolve(),
    compact: () => {
      written.length = 0;
      written.push(`snapshot of ${applied}`);
      return Promise.resolve();
    },
    close: () => Promise.resolve(),
  };
  const macrotasks: (() => void)[] = [];
  const journal = new LoggedJournal({
    log,
    ...{ snapshot: () => new Uint8Array(), recordsMax: 1, bytesMax: 1e9 },
    ...{ nowMs: () => 0, onStall: () => {}, onTooLarge: () => {}, onFailure: () => {} },
    macrotask: (fn) => void macrotasks.push(fn),
    timer: (_delayMs, fn) => {
      queueMicrotask(fn);
      return { cancel: () => {} };
    },
  }, { records: 0, bytes: 0, snapshotBytes: 0 });
  const commit = () => {
    applied++;
    journal.append({ type: "worker_lost", name: "w" } as unknown as JournalRecord);
    return journal.committed();
  };
  const first = commit();
  macrotasks.shift()!();
  while (syncs.length > 0) await undefined;
  // The disk is tried again; meanwhile another record comes, which makes the journal too long.
  const second = commit();
  freed.resolve();
  await first;
  macrotasks.shift()!();
  await second;
  assertEquals(written, ["snapshot of 2"]);
});
