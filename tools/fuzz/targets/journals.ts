/** The dispatcher's journal: the file on disk, and the records in it. */
import { decodeRecords, RecordBatch } from "../../../actors/dispatcher/journal/records.ts";
import { decodeSnapshot } from "../../../actors/dispatcher/journal/snapshot.ts";
import { DispatcherState } from "../../../actors/dispatcher/state/state.ts";
import { openSqliteLog } from "../../../platform/journal/sqlite_log.ts";
import journals from "../../../tests/formats/journals.json" with { type: "json" };
import { mutateMessage } from "../mutate_tree.ts";
import type { Target } from "../target.ts";

const RECORDS = Array.from({ length: 12 }, (_, i) => new Uint8Array(20 + 40 * i).fill(i + 1));

/** Makes the file of a closed log with records, and with a snapshot before them if `hasSnapshot`. */
async function logFile(folder: string, hasSnapshot: boolean): Promise<Uint8Array> {
  const path = `${folder}/made-${hasSnapshot}`;
  const log = await openSqliteLog(path);
  if (hasSnapshot) await log.compact(new Uint8Array(300).fill(0xaa));
  for (const record of RECORDS) {
    log.append(record);
    await log.sync();
  }
  await log.close();
  return await Deno.readFile(path);
}

/**
 * Reads a log. A damaged log must be refused, or return the written records or a prefix of them.
 */
async function readLog(path: string): Promise<void> {
  const log = await openSqliteLog(path);
  try {
    const { records } = await log.read();
    for (const [i, record] of records.entries()) {
      const wanted = RECORDS[i];
      if (wanted === undefined || record.toHex() !== wanted.toHex()) {
        throw new Error(`record ${i} is not what was written`);
      }
    }
  } finally {
    await log.close();
  }
}

function records(): Uint8Array {
  const batch = new RecordBatch();
  for (let i = 0; i < 4; i++) {
    batch.add({ type: "split_assigned", taskId: i, source: 0, repetition: 0, index: i, number: i });
  }
  return batch.encode();
}

/** The states of the stored journals. */
function snapshots(): [Uint8Array, ...Uint8Array[]] {
  const [first, ...others] = journals.map(({ state }) => Uint8Array.fromBase64(state));
  return [first!, ...others];
}

/** Targets that read journals. */
export const JOURNAL_TARGETS: Readonly<Record<string, Target>> = {
  journal: {
    help: "files of the journal (SQLite), which have no record that was never written",
    open: async () => {
      const folder = await Deno.makeTempDir({ prefix: "leat-fuzz-" });
      const seeds = [await logFile(folder, false), await logFile(folder, true)] as const;
      let number = 0;
      return {
        seeds: [...seeds] as [Uint8Array, Uint8Array],
        async run(input) {
          const own = `${folder}/${number++}`;
          await Deno.mkdir(own);
          try {
            await Deno.writeFile(`${own}/log`, input);
            await readLog(`${own}/log`);
          } finally {
            await Deno.remove(own, { recursive: true });
          }
        },
        close: () => Deno.remove(folder, { recursive: true }),
      };
    },
  },
  records: {
    help: "records of the journal",
    open: () => ({ seeds: [records()], run: decodeRecords }),
  },
  snapshot: {
    help: "snapshots of the journal, from which a dispatcher restores its state",
    open: () => ({
      seeds: snapshots(),
      mutate: mutateMessage,
      run: (input) => DispatcherState.restore(decodeSnapshot(input)),
    }),
  },
};
