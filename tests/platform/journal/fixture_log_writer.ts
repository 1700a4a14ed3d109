/**
 * Appends numbered records to the log named on its command line endlessly, and prints which are
 * durable.
 */
import { openSqliteLog } from "../../../platform/journal/sqlite_log.ts";

const log = await openSqliteLog(Deno.args[0]!);
for (let number = 1;; number++) {
  const record = new Uint8Array(4);
  new DataView(record.buffer).setUint32(0, number);
  log.append(record);
  if (number % 7 !== 0) continue;
  await log.sync();
  console.log(`durable ${number}`);
}
