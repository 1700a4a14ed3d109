/**
 * Measures how fast rows are appended to a `node:sqlite` file with a write-ahead log: with each level
 * of durability, and one or 64 rows per transaction.
 */

import { DatabaseSync } from "node:sqlite";
import { type Load, printMeasured, synchronousLoad } from "./load.ts";

/** `FULL` waits for the disk at every commit, `NORMAL` only at checkpoints. */
type Synchronous = "FULL" | "NORMAL";

const ROW_BYTES = 100;

/** Opens the load, on a file in a new temporary folder. Its unit is a row. */
export function open(synchronous: Synchronous, rowsPerTransaction: number): Load {
  const folder = Deno.makeTempDirSync({ prefix: "leat-bench-" });
  const database = new DatabaseSync(`${folder}/journal.sqlite`);
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous};`);
  database.exec("CREATE TABLE journal (id INTEGER PRIMARY KEY, record BLOB NOT NULL) STRICT");
  const insert = database.prepare("INSERT INTO journal (record) VALUES (?)");
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  const record = new Uint8Array(ROW_BYTES).fill(7);
  const append = () => {
    begin.run();
    for (let i = 0; i < rowsPerTransaction; i++) insert.run(record);
    commit.run();
    return rowsPerTransaction;
  };
  return synchronousLoad(append, () => {
    database.close();
    Deno.removeSync(folder, { recursive: true });
  });
}

if (import.meta.main) {
  for (const synchronous of ["FULL", "NORMAL"] as const) {
    for (const rows of [1, 64]) {
      const name = `bare SQLite, ${synchronous}, ${rows} a commit`;
      await printMeasured(name, "rows/s", () => open(synchronous, rows));
    }
  }
}
