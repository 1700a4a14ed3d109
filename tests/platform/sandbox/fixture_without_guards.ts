/**
 * A confined cluster on a kernel without Landlock and without filters of system calls: a filter of
 * this process answers so. Prints the cluster's result for a pipeline.
 */
import { Dataset, LocalCluster } from "../../../mod.ts";
import { filterProgram, type Instruction } from "../../../platform/sandbox/guards/call_filter.ts";
import { callsOf } from "../../../platform/sandbox/guards/denied_calls.ts";
import { KernelCalls } from "../../../platform/sandbox/guards/kernel_calls.ts";

const LANDLOCK_CREATE_RULESET = 444;
const PR_SET_SECCOMP = 22;
const [ENOSYS, EPERM] = [38, 1];

const program: Instruction[] = [
  [0x20, 0, 0, 0], // the number
  [0x15, 0, 1, LANDLOCK_CREATE_RULESET],
  [0x06, 0, 0, 0x0005_0000 | ENOSYS],
  [0x15, 0, 3, callsOf(Deno.build.arch).byArguments.prctl],
  [0x20, 0, 0, 16], // the first argument
  [0x15, 0, 1, PR_SET_SECCOMP],
  [0x06, 0, 0, 0x0005_0000 | EPERM],
  [0x06, 0, 0, 0x7fff_0000],
];
const kernel = new KernelCalls();
kernel.setNoNewPrivileges();
if (!kernel.filterCalls(filterProgram(program))) throw new Error("This kernel takes no filter");

await using cluster = await LocalCluster.start({ workers: 1, confine: true, logLevel: "warn" });
for (let job = 0; job < 3; job++) {
  const squares = Dataset.range(3).map((x) => x * x);
  for await (const x of squares.distribute({ service: cluster, processingMode: "OFF" })) {
    console.log(x);
  }
}
