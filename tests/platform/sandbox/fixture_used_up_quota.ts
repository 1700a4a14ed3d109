/**
 * A log and a file whose writes beyond some offset fail with EDQUOT, like an exhausted quota: a
 * filter of system calls makes the kernel answer so. Prints how they end.
 */
import { LeatError } from "../../../mod.ts";
import { filterProgram, type Instruction } from "../../../platform/sandbox/guards/call_filter.ts";
import { KernelCalls } from "../../../platform/sandbox/guards/kernel_calls.ts";
import { DenoNewFiles } from "../../../platform/storage/new_files.ts";
import { openSqliteLog } from "../../../platform/journal/sqlite_log.ts";

/** Numbers of `write` and `pwrite64`. */
const [WRITE, PWRITE] = Deno.build.arch === "x86_64" ? [1, 18] : [64, 68];
const EDQUOT = 122;
/** The offset from which writes fail. */
const ROOM_BYTES = 64 * 1024;

/** `write` to a file, and `pwrite64` far in one, fail; nothing else does. */
function quota(): Uint8Array<ArrayBuffer> {
  const fails: Instruction = [0x06, 0, 0, 0x0005_0000 | EDQUOT];
  const goesOn: Instruction = [0x06, 0, 0, 0x7fff_0000];
  return filterProgram([
    [0x20, 0, 0, 0], // the number
    [0x15, 2, 0, WRITE],
    [0x15, 5, 0, PWRITE],
    goesOn,
    [0x20, 0, 0, 16], // the file: standard output is none
    [0x25, 0, 4, 2],
    [0x20, 0, 0, 32], // the length: shorter ones wake threads
    [0x25, 3, 2, 8],
    [0x20, 0, 0, 40], // the offset
    [0x25, 1, 0, ROOM_BYTES],
    goesOn,
    fails,
  ]);
}

const log = await openSqliteLog(Deno.args[0]!);
const kernel = new KernelCalls();
kernel.setNoNewPrivileges();
if (!kernel.filterCalls(quota())) throw new Error("This kernel takes no filter");
for (const byteLength of [1_000, 200_000, 10]) {
  log.append(new Uint8Array(byteLength));
  await print(() => log.sync());
}
const file = await new DenoNewFiles().create(`${Deno.args[0]}-other`);
await print(() => file.append(new Uint8Array(200_000)));

async function print(write: () => unknown): Promise<void> {
  const error = await Promise.try(write).then(() => undefined, LeatError.from);
  console.log(error === undefined ? "written" : `${error.code}: ${error.message}`);
}
