/**
 * The process in which inputs run. It reads its task from the command line, and reports in lines of JSON.
 * The process that started it notices if an input crashes it, hangs it or exhausts its memory.
 */
import process from "node:process";
import { EXIT_MEMORY, type Failure, inProcessFailure, type News, type Task } from "./news.ts";
import { inputsOf, judge } from "./cases.ts";
import { shrink } from "./shrink.ts";
import type { OpenTarget, TargetModule } from "./target.ts";

/** Time between two progress lines, in ms. */
const ANNOUNCED_EVERY_MS = 100;
/** Maximum number of runs to shrink an input. */
const SHRINK_RUNS_MAX = 2_000;
/** Maximum size of an input that is shrunk. */
const SHRINK_BYTES_MAX = 20_000;

/** Inputs between two turns of the event loop, in which Node frees what failed decompressions took. */
const TURN_INPUTS = 256;

function send(news: News): void {
  const line = new TextEncoder().encode(`${JSON.stringify(news)}\n`);
  for (let at = 0; at < line.length;) at += Deno.stdout.writeSync(line.subarray(at));
}

async function main(task: Task): Promise<void> {
  const { TARGETS } = await import(task.module) as TargetModule;
  const target = await TARGETS[task.target]!.open();
  try {
    if (task.input === undefined) await runAll(task, target);
    else await runOne(task, target, Uint8Array.fromBase64(task.input));
  } finally {
    await target.close?.();
  }
}

async function runOne(task: Task, target: OpenTarget, input: Uint8Array): Promise<void> {
  send({ kind: "at", index: 0, valid: 0, input: task.input! });
  const verdict = await judge(target, input);
  if (verdict.kind === "failed") send(inProcessFailure(0, input, verdict));
  checkMemory(task, 0, input);
  send({ kind: "done", runs: 1, valid: verdict.kind === "valid" ? 1 : 0 });
}

async function runAll(task: Task, target: OpenTarget): Promise<void> {
  const inputAt = inputsOf(target, task.target, BigInt(task.seed));
  const endMs = performance.now() + (task.ms ?? Infinity);
  const signatures = new Set<string>();
  let announcedMs = -Infinity;
  let valid = 0;
  let index = task.first;
  for (; index < task.end; index++) {
    const nowMs = performance.now();
    if (nowMs > endMs) break;
    if (index % TURN_INPUTS === 0) await new Promise((resolve) => setTimeout(resolve));
    const input = inputAt(index);
    if (task.isCareful || nowMs - announcedMs > ANNOUNCED_EVERY_MS) {
      announcedMs = nowMs;
      send({ kind: "at", index, valid, ...(task.isCareful ? { input: input.toBase64() } : {}) });
    }
    const verdict = await judge(target, input);
    if (verdict.kind === "valid") valid++;
    checkMemory(task, index, input);
    if (verdict.kind !== "failed" || signatures.has(verdict.signature)) continue;
    signatures.add(verdict.signature);
    send(inProcessFailure(index, await smaller(target, input, verdict.signature), verdict));
  }
  send({ kind: "done", runs: index - task.first, valid });
}

async function smaller(
  target: OpenTarget,
  input: Uint8Array,
  signature: string,
): Promise<Uint8Array> {
  if (input.length > SHRINK_BYTES_MAX) return input;
  return await shrink(input, async (candidate) => {
    const verdict = await judge(target, candidate);
    return verdict.kind === "failed" && verdict.signature === signature;
  }, { runsMax: SHRINK_RUNS_MAX });
}

/** Returns the process's peak memory. A new process inherits the peak of the process that started it. */
const peakBytesOfProcess = () => process.resourceUsage().maxRSS * 1_024;
const inheritedBytes = peakBytesOfProcess();

/** Ends the process if it has exceeded the memory limit. */
function checkMemory({ memoryBytesMax }: Task, index: number, input: Uint8Array): void {
  const peak = peakBytesOfProcess();
  const peakBytes = peak > inheritedBytes ? peak : Deno.memoryUsage().rss;
  if (peakBytes <= memoryBytesMax) return;
  const failure: Failure = {
    kind: "failure",
    index,
    reason: "memory",
    message: `took ${peakBytes} bytes, more than ${memoryBytesMax}`,
    signature: "memory",
    input: input.toBase64(),
  };
  send(failure);
  Deno.exit(EXIT_MEMORY);
}

if (import.meta.main) await main(JSON.parse(Deno.args[0]!) as Task);
