/**
 * What a call of a function costs the process, and the thread of the pipeline, with other threads
 * and without: CPU time, so that load on the machine changes little.
 *
 * ```sh
 * deno run -P=bench bench/costs/functions.ts
 * ```
 */
import process from "node:process";
import { Dataset } from "../../mod.ts";

/** About 9 ns a round. */
function work(x: number, { rounds }: { readonly rounds: number }): number {
  for (let i = 0; i < rounds; i++) x = Math.sqrt(x * x + i);
  return x;
}

/** CPU time of a call on all threads and on this one, in µs. */
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
