/** The journal: when it is compacted, and a disk that is full for a while. */
import { LoggedJournal } from "../../../actors/dispatcher/journal/journal.ts";
import type { JournalRecord } from "../../../actors/dispatcher/journal/records.ts";
import type { DurableLog } from "../../../actors/runtime/durable_log.ts";
import { LeatError } from "../../../core/error.ts";
import { assert, assertEquals } from "../../assert.ts";

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

Deno.test("LoggedJournal reports space after a full disk only if a write succeeds", async () => {
  for (const fails of [false, true]) {
    const syncs = [
      () => Promise.reject(new LeatError("resource_exhausted", "the disk is full")),
      ...(fails ? Array(2).fill(() => Promise.reject(new Error("the disk is gone"))) : []),
    ];
    const stalls: boolean[] = [];
    const journal = new LoggedJournal({
      log: {
        read: () => Promise.resolve({ snapshot: undefined, records: [] }),
        append: () => {},
        sync: () => syncs.shift()?.() ?? Promise.resolve(),
        compact: () => Promise.resolve(),
        close: () => Promise.resolve(),
      },
      ...{ snapshot: () => new Uint8Array(), recordsMax: 1e9, bytesMax: 1e9 },
      ...{ nowMs: () => 0, onTooLarge: () => {}, onFailure: () => {} },
      onStall: (stall) => void stalls.push(stall !== undefined),
      macrotask: queueMicrotask,
      timer: (_delayMs, fn) => {
        queueMicrotask(fn);
        return { cancel: () => {} };
      },
    }, { records: 0, bytes: 0, snapshotBytes: 0 });
    journal.append({ type: "worker_lost", name: "w", wallMs: 0 });
    await journal.committed()?.catch(() => {});
    assertEquals(stalls, fails ? [true] : [true, false]);
    assertEquals(journal.stall, undefined);
  }
});

/** How many of `commits` commits, of one record each, compact a journal. */
async function compactions(
  commits: number,
  { snapshotBytes, recordsMax }: { readonly snapshotBytes: number; readonly recordsMax: number },
): Promise<{ readonly compacted: number; readonly recordBytes: number }> {
  let compacted = 0;
  let recordBytes = 0;
  const log: DurableLog = {
    read: () => Promise.resolve({ snapshot: undefined, records: [] }),
    append: (record) => void (recordBytes += record.byteLength),
    sync: () => Promise.resolve(),
    compact: () => {
      compacted++;
      return Promise.resolve();
    },
    close: () => Promise.resolve(),
  };
  const journal = new LoggedJournal({
    log,
    ...{ snapshot: () => new Uint8Array(snapshotBytes), recordsMax, bytesMax: 1e9 },
    ...{ nowMs: () => 0, onStall: () => {}, onTooLarge: () => {}, onFailure: () => {} },
    macrotask: queueMicrotask,
    timer: () => ({ cancel: () => {} }),
  }, { records: 0, bytes: 0, snapshotBytes });
  for (let number = 1; number <= commits; number++) {
    journal.append({
      ...{ type: "split_assigned", taskId: 1, source: 0, repetition: 0 },
      ...{ index: number - 1, number },
    });
    await journal.committed();
  }
  return { compacted, recordBytes };
}

Deno.test("a journal of many records is compacted at most once per eighth of its snapshot", async () => {
  const snapshotBytes = 8_000;
  const { compacted, recordBytes } = await compactions(400, { snapshotBytes, recordsMax: 10 });
  const compactedMax = recordBytes / (snapshotBytes / 8);
  assert(compacted >= 1 && compacted <= compactedMax, `${compacted} of ${compactedMax}`);
});

Deno.test("a journal whose snapshot is small is compacted above its limit of records", async () => {
  const { compacted } = await compactions(400, { snapshotBytes: 8, recordsMax: 10 });
  assertEquals(compacted, Math.floor(400 / 11));
});

Deno.test("a journal is compacted at 50 times its limit of records, however large the snapshot is", async () => {
  const { compacted } = await compactions(1_100, { snapshotBytes: 1e6, recordsMax: 10 });
  assertEquals(compacted, Math.floor(1_100 / 501));
});
