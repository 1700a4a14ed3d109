/**
 * A log whose mark cannot be written, as on a disk that fails: a filter of system calls makes the
 * kernel answer writes of the mark's length with EIO. Prints how two calls of `sync` end.
 */
import { LeatError } from "../../../core/error.ts";
import { openSqliteLog } from "../../../platform/journal/sqlite_log.ts";
import { filterProgram } from "../../../platform/sandbox/guards/call_filter.ts";
import { KernelCalls } from "../../../platform/sandbox/guards/kernel_calls.ts";

/** Numbers of `write` and `pwrite64`. */
const [WRITE, PWRITE] = Deno.build.arch === "x86_64" ? [1, 18] : [64, 68];
const EIO = 5;
const MARK_BYTES = 12;

const program = filterProgram([
  [0x20, 0, 0, 0], // the number
  [0x15, 1, 0, WRITE],
  [0x15, 0, 4, PWRITE],
  [0x20, 0, 0, 16], // the file: standard output is none
  [0x25, 0, 2, 2],
  [0x20, 0, 0, 32], // the length
  [0x15, 1, 0, MARK_BYTES],
  [0x06, 0, 0, 0x7fff_0000],
  [0x06, 0, 0, 0x0005_0000 | EIO],
]);

const log = await openSqliteLog(Deno.args[0]!);
const kernel = new KernelCalls();
kernel.setNoNewPrivileges();
if (!kernel.filterCalls(program)) throw new Error("This kernel takes no filter");
log.append(new Uint8Array([7]));
for (let i = 0; i < 2; i++) {
  const error = await log.sync().then(() => undefined, LeatError.from);
  console.log(error === undefined ? "written" : `${error.code}: ${error.message}`);
}
