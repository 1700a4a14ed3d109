/**
 * Measures what a call of a function costs the process and the pipeline's thread, with other threads
 * and without. It measures CPU time, which other load on the machine hardly changes.
 *
 * ```sh
 * deno run -P=bench bench/costs/functions.ts
 * ```
 */
import process from "node:process";
import { Dataset } from "../../mod.ts";

/** A round takes 4 to 9 ns, depending on the processor. */
function work(x: number, { rounds }: { readonly rounds: number }): number {
  for (let i = 0; i < rounds; i++) x = Math.sqrt(x * x + i);
  return x;
}

/** Returns the CPU time of a call on all threads and on the pipeline's thread, in µs. */
async function costOf(rounds: number, threads: boolean): Promise<string> {
  const calls = Math.max(200, Math.round(30_000_000 / rounds));
  await using iterator = Dataset.counter()
    .map(work, { numParallelCalls: 4, captures: { rounds } })
    .withOptions({ threads })
    .iterator();
  for (let i = 0; i < calls / 4; i++) await iterator.next();
  const [all, own] = [process.cpuUsage(), process.threadCpuUsage()];
  for (let i = 0; i < calls; i++) await iterator.next();
  const [allNow, ownNow] = [process.cpuUsage(all), process.threadCpuUsage(own)];
  const us = ({ user, system }: { user: number; system: number }) =>
    ((user + system) / calls).toFixed(1).padStart(6);
  return `${us(allNow)} (${us(ownNow)} on the thread of the pipeline)`;
}

for (const rounds of [250, 1_000, 4_000, 12_000, 50_000]) {
  const [here, threads] = [await costOf(rounds, false), await costOf(rounds, true)];
  console.log(`µs of CPU a call: without threads ${here}, with threads ${threads}`);
}
