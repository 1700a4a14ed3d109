/** Recommends the number of workers for a pipeline: `deno task plan --help`. */
import { PAPER_PRICES, PAPER_TRAINER_MACHINE, PAPER_WORKER_MACHINE } from "../mod.ts";
import { EXIT_FAILURE, runProgram } from "./lib/args.ts";
import { commandOf } from "./lib/command_line.ts";
import type { Program } from "./lib/help.ts";
import { flag, integer, number, operand, percent, text, type Values } from "./lib/options.ts";
import { counted } from "./lib/counted.ts";
import { requireWritable } from "./lib/page.ts";
import { StatusLine } from "./lib/status_line.ts";
import { StopRequests } from "./lib/stop_requests.ts";
import { type Machines, sweepClusters } from "./plan/clusters.ts";
import { limitsOf } from "./plan/limits.ts";
import { TIME_LIMIT_TEXT } from "./plan/progress_timeout.ts";
import { type ProfiledModule, profileModule } from "./plan/profiled_module.ts";
import { memoryGBOf, type Plan, planText, writePlan } from "./plan/report.ts";
import { Stages } from "./plan/stages.ts";
import { verifyUpTo } from "./plan/verification.ts";

const BYTES_PER_MEGABIT = 1e6 / 8;
/** Time between two progress lines outside a terminal, in ms. */
const PLAIN_EVERY_MS = 10_000;

const OPTIONS = {
  module: operand({
    help: "A module that exports a Dataset, or a function that returns one.",
    placeholder: "MODULE",
  }),
  stepMs: number({
    help: "Time of a training step, one batch, in ms.",
    required: true,
    min: 0.01,
    max: 3_600_000,
  }),
  export: text({
    help: "The name of the export. Default: 'default', or the only export that fits.",
    placeholder: "NAME",
  }),
  trainers: integer({ help: "Trainers that read the job.", default: 1, min: 1, max: 256 }),
  seconds: number({
    help: `How long the pipeline runs here. Loading it, or one batch, may take ${TIME_LIMIT_TEXT}.`,
    default: 5,
    min: 0.1,
    max: 3600,
  }),
  workersMax: integer({
    help: "Limit of the workers to simulate.",
    default: 64,
    min: 1,
    max: 1024,
  }),
  stallMax: percent({ help: "The share of their time that accelerators may wait.", default: 2 }),
  coresPerWorker: integer({
    help: "Cores of a worker's machine, which several workers may share.",
    default: PAPER_WORKER_MACHINE.cores,
    min: 1,
    max: 4_096,
  }),
  networkMbps: number({
    help: "Bandwidth of a host's network card each way, in Mbit/s.",
    default: 10_000,
    min: 0.1,
  }),
  roundTripMs: number({
    help: "Round trip of a short message between two hosts, in ms.",
    default: 1.2,
    min: 0,
    max: 60_000,
  }),
  memoryGbPerWorker: number({
    help: "Memory of a worker, in GB. Default: that of the pipeline here.",
    min: 0,
  }),
  trainerCores: integer({
    help: "Cores of a trainer's host.",
    default: PAPER_TRAINER_MACHINE.cores,
    min: 1,
  }),
  trainerMemoryGb: number({
    help: "Memory of a trainer's host.",
    default: PAPER_TRAINER_MACHINE.memoryGB,
    min: 0,
  }),
  accelerators: integer({ help: "Accelerators of a trainer.", default: 1, min: 1 }),
  priceCpuHour: price("a core", PAPER_PRICES.cpuPerCoreHour),
  priceMemoryGbHour: price("a GB of memory", PAPER_PRICES.memoryPerGBHour),
  priceAcceleratorHour: price("an accelerator", PAPER_PRICES.acceleratorPerHour),
  verify: integer({
    help:
      "Also runs 1 to N real workers and one trainer, whatever --trainers is, on threads of this " +
      "host, for comparison.",
    default: 0,
    min: 0,
    max: 16,
  }),
  json: flag("Prints everything as JSON."),
  out: text({ help: "Writes a page with plots.", placeholder: "FILE" }),
};

export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task plan",
  summary:
    "Runs an input pipeline here for a few seconds, simulates clusters of workers with the " +
    "measurements, and reports how many workers it needs, their cost and the next bottleneck.",
  options: OPTIONS,
  notes: `Examples:
  deno task plan cli/plan/demo_pipeline.ts --step-ms 20
  deno task plan pipeline.ts --step-ms 120 --export train --trainers 4 --out plan.html

Under deno task plan the module may read files, decode images, and write below the working
folder, /tmp and /var/folders. Grant what else it needs with Deno's own flags:
  deno run --no-prompt -P=plan --allow-net=data.example.org cli/plan.ts pipeline.ts \\
    --step-ms 120

The exit status is 1 if there is no plan, or --verify could not run a pipeline that was planned.`,
};

export const run = (args: readonly string[] = Deno.args): Promise<void> =>
  runProgram(PROGRAM, main, args);

if (import.meta.main) await run();

async function main(values: Values<typeof OPTIONS>, args: readonly string[]): Promise<void> {
  const { json, out } = values;
  if (out !== undefined) requireWritable(out, "--out");
  using requests = new StopRequests();
  using status = new StatusLine({ plainEveryMs: PLAIN_EVERY_MS });
  let done = "nothing was measured yet";
  const making = makePlan(values, args, status, (what) => done = what);
  const plan = await requests.interrupting(making, () => {
    status[Symbol.dispose]();
    return `Interrupted: ${done}; there is no plan, and nothing is kept`;
  });
  status[Symbol.dispose]();
  console.log(json ? JSON.stringify(plan, null, 2) : planText(plan));
  if (plan.whyUnverified !== undefined) Deno.exitCode = EXIT_FAILURE;
  if (out === undefined) return;
  writePlan(plan, out);
  status.note(`Plots: ${out}`);
}

/** @param onDone Called after each part, with what has been done so far. */
async function makePlan(
  values: Values<typeof OPTIONS>,
  args: readonly string[],
  status: StatusLine,
  onDone: (what: string) => void,
): Promise<Plan> {
  const { module, seconds } = values;
  const startedAt = new Date().toISOString();
  using stages = new Stages(status);
  const { dataset, profile } = await profiled(values, status, stages);
  const machines = machinesOf(values, memoryGBOf(profile));
  onDone("the pipeline was measured, and no cluster simulated");
  const sweep = await sweepClusters(profile, machines, (workers) => {
    stages.begin(`simulating ${counted(workers, "worker")}`);
  });
  stages.begin("simulating the next bottleneck");
  const limits = await limitsOf(profile, machines, Math.max(1, sweep.recommended.workers));
  onDone("the pipeline was measured, and clusters simulated");
  const verified = await verifyUpTo(dataset, profile, machines, {
    ...{ workersMax: values.verify, seconds },
    onRun: (workers) => stages.begin(`running ${counted(workers, "real worker")}`),
  });
  return {
    ...{ startedAt, module, host: hostText(), measured: profile, assumed: machines },
    ...verified,
    commandLine: commandOf(PROGRAM.usage, args),
    modelled: { ...sweep, limits },
  };
}

async function profiled(
  values: Values<typeof OPTIONS>,
  status: StatusLine,
  stages: Stages,
): Promise<ProfiledModule> {
  const { module, seconds } = values;
  let batches = 0;
  stages.begin(`loading ${module}`);
  return await profileModule(module, {
    seconds,
    export: values.export,
    onLoaded() {
      status.note(`Running ${module} for ${seconds} s…`);
      stages.begin(() =>
        batches === 0 ? "waiting for the first batch" : counted(batches, "batch", "batches")
      );
    },
    onProgress: (count) => batches = count,
    onProfiled: () => stages.begin("measuring what a split costs"),
  });
}

function machinesOf(values: Values<typeof OPTIONS>, measuredGB: number): Machines {
  const { stepMs, trainers, workersMax, coresPerWorker, trainerCores, stallMax } = values;
  const { roundTripMs } = values;
  return {
    ...{ stepMs, trainers, workersMax, coresPerWorker, trainerCores, stallMax, roundTripMs },
    networkBytesPerSecond: values.networkMbps * BYTES_PER_MEGABIT,
    workerMemoryGB: values.memoryGbPerWorker ?? measuredGB,
    trainerMemoryGB: values.trainerMemoryGb,
    acceleratorsPerTrainer: values.accelerators,
    prices: {
      cpuPerCoreHour: values.priceCpuHour,
      memoryPerGBHour: values.priceMemoryGbHour,
      acceleratorPerHour: values.priceAcceleratorHour,
    },
  };
}

function price(what: string, dollars: number) {
  return number({
    help: `What ${what} costs for an hour, in USD.`,
    default: Number(dollars.toPrecision(3)),
    min: 0,
  });
}

function hostText(): string {
  const cores = navigator.hardwareConcurrency;
  return `this host (${counted(cores, "core")}, ${Deno.build.os} ${Deno.build.arch})`;
}
