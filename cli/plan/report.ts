/** Formats a plan as text, as tables and as a page. */
import { counted } from "../lib/counted.ts";
import { type ChartSeries, drawLines, type Figure, seriesColor } from "../lib/line_chart.ts";
import { renderFacts, renderPage, renderSection, writePage } from "../lib/page.ts";
import { measured, modelled, type Quantity, type Unit } from "../lib/quantity.ts";
import { formatNumber, percent, renderTable, type Table } from "../lib/table.ts";
import { type ClusterRun, inGB, type Machines, SAME_PRICE, STEPS, type Sweep } from "./clusters.ts";
import { type Limit, nextLimit, type Part } from "./limits.ts";
import type { Profile } from "./profile.ts";
import type { Verification, Verified } from "./verification.ts";

/** The plan as plain data: measurements, assumptions, and the model's results. */
export interface Plan extends Verified {
  readonly startedAt: string;
  readonly commandLine: string;
  readonly host: string;
  readonly module: string;
  readonly measured: Profile;
  readonly assumed: Machines;
  readonly modelled: Sweep & { readonly limits: readonly Limit[] };
}

const BYTES_PER_MB = 1e6;
/** If other programs slow the profile down by this factor, the plan warns that it may be wrong. */
const CONTENTION_NOTED = 1.2;
const SPLITS_NOTED = 2;
const UNDIVIDED =
  "CAUTION: the pipeline's sources cannot be divided among workers. DYNAMIC jobs are refused, and under OFF each " +
  "worker gives all elements.";
/** A pipeline with this share of computing or more mostly computes. */
const COMPUTING_SHARE_MIN = 0.5;

const LIMIT_TEXTS: Readonly<Record<Part, string>> = {
  workers: "the workers",
  accelerators: "the accelerators themselves",
  ingest: "decoding batches in the training loop (smaller elements help: uint8, not float32)",
  "trainer network": "the network card of a trainer (smaller elements help, or a faster card)",
  dispatcher: "the dispatcher's messages (more files or rows in a split help)",
};

const VERIFIED_NOTE =
  "Here the workers share cores with the trainer and other programs; in the model each worker has its own.";

/** Formats the plan for a terminal. */
export function planText(plan: Plan): string {
  const verified = plan.verified.length === 0
    ? []
    : [renderTable(verifiedTable(plan.verified)), ""];
  return [
    ...profileLines(plan),
    "",
    renderTable(clusterTable(plan.modelled)),
    "",
    ...verified,
    ...recommendation(plan),
    ...unverifiedLines(plan),
  ].join("\n");
}

/** Says which number of real workers could not be run, and why. */
function unverifiedLines({ verified, whyUnverified }: Plan): string[] {
  return whyUnverified === undefined ? [] : [
    `NOT VERIFIED with ${counted(verified.length + 1, "real worker")}: ${whyUnverified}`,
  ];
}

/** The measurements, in sentences. */
function profileLines({ measured: profile, host }: Plan): string[] {
  const { batchMs, cpuMs, encodeMs, decodeMs, batchBytes, percentilesMs, contention } = profile;
  const { splitsPerBatch } = profile;
  const ms = (value: number) => `${formatNumber(value)} ms`;
  const { p10, p50, p90, p99 } = percentilesMs;
  const kind = profile.computingShare >= COMPUTING_SHARE_MIN
    ? `${percent(profile.computingShare)} of it computing`
    : `${percent(1 - profile.computingShare)} of it waiting`;
  const runs = profile.runs > 1 ? ` The dataset is short: it was read ${profile.runs} times.` : "";
  const lines = [
    `Measured on ${host}: ${profile.batches} batches in ${
      formatNumber(profile.measuredMs / 1_000, 1)
    } s, after ${ms(profile.firstBatchMs)} for the first.${runs}`,
    `A batch takes ${ms(batchMs)} of a worker (${kind}), ${ms(cpuMs)} of processor time; ` +
    `percentiles of a batch, without encoding: 10 % ${ms(p10)}, 50 % ${ms(p50)}, 90 % ${
      ms(p90)
    }, 99 % ${ms(p99)}.`,
    `It has ${megabytes(batchBytes)} MB: ${ms(encodeMs)} to encode, ${
      ms(decodeMs)
    } to decode. This process took ${megabytes(profile.memoryBytes)} MB of memory.`,
  ];
  if (splitsPerBatch === undefined) lines.push(UNDIVIDED);
  else if (splitsPerBatch > SPLITS_NOTED) {
    lines.push(
      `For each batch a worker requests ${
        formatNumber(splitsPerBatch, 1)
      } splits from the dispatcher, and waits for each (${
        ms(profile.splitMs)
      } here, plus the network between hosts). Larger splits (longer files, or larger parts of them) need fewer requests.`,
    );
  }
  if (contention < CONTENTION_NOTED) return lines;
  return [
    ...lines,
    `CAUTION: other programs kept this host busy; computing took ${
      formatNumber(contention, 1)
    } times as long as it would alone. The figures are corrected only approximately: plan again on a free host.`,
  ];
}

/** The recommendation, in sentences. */
function recommendation({ measured: profile, assumed, modelled: sweep }: Plan): string[] {
  const { recommended, colocated, cheapest, isMet: isStallAllowed, limits } = sweep;
  const next = nextLimit(limits);
  const others = limits.filter(({ part }) => part !== "workers" && part !== next.part);
  const { stall, batchesPerSecond } = recommended;
  const lines = [
    `${isStallAllowed ? "Best" : "As good as it gets"}: ${sizeText(recommended)}. ${
      rate(batchesPerSecond.expected)
    }; accelerators wait ${percent(stall.expected)} of their time (${percent(stall.low)} to ${
      percent(stall.high)
    }, at the pace of the fast and the slow parts of the profile).`,
    ...(isStallAllowed ? safeText(sweep, assumed) : [missedText(sweep, assumed)]),
    `Cost of ${STEPS} steps: ${dollars(recommended)} in ${
      formatNumber(recommended.jobSeconds)
    } s. ${
      recommended === colocated
        ? ""
        : `Colocated: ${dollars(colocated)} in ${
          formatNumber(colocated.jobSeconds)
        } s, with accelerators waiting ${percent(colocated.stall.expected)}. `
    }Cheapest (prices within ${percent(SAME_PRICE)} count as equal): ${sizeText(cheapest)}, ${
      dollars(cheapest)
    }.`,
    ...(recommended.workers === 0 ? [] : [machinesText(recommended, assumed)]),
    `Next bottleneck, if workers are added: ${LIMIT_TEXTS[next.part]}, at ${
      rate(next.batchesPerSecond)
    }. After that: ${
      others.map(({ part, batchesPerSecond }) => `${part} ${rate(batchesPerSecond)}`).join(", ")
    }.`,
  ];
  if (profile.advice !== "") lines.push(`In the pipeline itself: ${profile.advice}`);
  return lines;
}

/** States how many workers suffice even in slow stretches of the pipeline, if that is more. */
function safeText({ recommended, runs }: Sweep, { stallMax }: Machines): string[] {
  if (recommended.stall.high <= stallMax) return [];
  const safe = runs.find(({ workers, stall }) =>
    workers > recommended.workers && stall.high <= stallMax
  );
  return safe === undefined
    ? []
    : [`Sufficient in slow stretches as well: ${sizeText(safe)}, ${dollars(safe)}.`];
}

function missedText({ runs }: Sweep, { stallMax, workersMax }: Machines): string {
  const tried = runs.at(-1)!.workers;
  const isLimited = tried >= workersMax;
  const option = isLimited ? ` (--workers-max ${workersMax})` : "";
  const advice = isLimited ? "" : " More workers would not help.";
  return `With up to ${tried} workers${option}, accelerators wait more than ` +
    `${percent(stallMax)}.${advice}`;
}

function machinesText({ workers, workerCores }: ClusterRun, machines: Machines): string {
  const { coresPerWorker, workerMemoryGB } = machines;
  const perMachine = Math.max(1, Math.floor(coresPerWorker / workerCores));
  const count = Math.ceil(workers / perMachine);
  return `A worker uses ${formatNumber(workerCores, 2)} cores (a pipeline runs on one thread) and ${
    formatNumber(workerMemoryGB, 2)
  } GB. ${perMachine} of them fill a machine of ${coresPerWorker} cores, ` +
    `so ${count} ${count === 1 ? "machine is" : "machines are"} enough.`;
}

/** Returns the table of the simulated clusters. */
function clusterTable({ colocated, runs, recommended, cheapest }: Sweep): Table {
  return {
    title:
      `Simulated clusters. Time and cost are those of ${STEPS} steps of each trainer; “busy” is the share of ` +
      "time in which workers produce batches, “net” is what a trainer receives",
    columns: [
      { heading: "workers" },
      { heading: "batches/s", digits: 1 },
      { heading: "stall", unit: "%", digits: 1 },
      { heading: "at best", unit: "%", digits: 1 },
      { heading: "at worst", unit: "%", digits: 1 },
      { heading: "busy", unit: "%", digits: 0 },
      { heading: "net, each s", unit: "MB" },
      { heading: "time", unit: "s" },
      { heading: "USD", digits: 4 },
      { heading: "" },
    ],
    rows: [colocated, ...runs].map((run) => [
      run.workers === 0 ? "colocated" : `${run.workers}`,
      modelled(run.batchesPerSecond.expected, "batches/s"),
      ...[run.stall.expected, run.stall.low, run.stall.high].map((share) => modelled(share, "1")),
      run.workers === 0 ? undefined : modelled(run.workerBusy, "1"),
      run.workers === 0 ? undefined : modelled(run.trainerBytesPerSecond, "bytes"),
      modelled(run.jobSeconds, "s"),
      modelled(run.dollars, "USD"),
      [run === recommended && "best", run === cheapest && "cheapest"]
        .filter((word) => word !== false).join(", "),
    ]),
  };
}

/** Returns the table of what operators cost per batch. */
function operatorTable({ operators }: Profile): Table {
  return {
    title: "Operators, the last one first; times are those of a batch",
    columns: [
      { heading: "operator" },
      { heading: "number" },
      { heading: "at work", unit: "ms" },
      { heading: "waiting for inputs", unit: "ms" },
    ],
    rows: operators.map(({ operator, number, selfMs, waitMs }) => [
      operator,
      number,
      measured(selfMs, "ms"),
      measured(waitMs, "ms"),
    ]),
  };
}

/** Returns the table that compares real workers with the model. */
function verifiedTable(verified: readonly Verification[]): Table {
  return {
    title:
      `Real workers on threads of this host, one trainer, compared with the model. ${VERIFIED_NOTE}`,
    columns: [
      { heading: "workers" },
      { heading: "real", unit: "batches/s", digits: 1 },
      { heading: "model", unit: "batches/s", digits: 1 },
      { heading: "model over real", unit: "×", digits: 2 },
      { heading: "CPU of a batch", unit: "ms", digits: 1 },
      { heading: "in the profile", unit: "ms", digits: 1 },
    ],
    rows: verified.map((
      { workers, measuredBatchesPerSecond, modelledBatchesPerSecond, ...cpu },
    ) => [
      workers,
      measured(measuredBatchesPerSecond, "batches/s"),
      modelled(modelledBatchesPerSecond, "batches/s"),
      modelled(modelledBatchesPerSecond / measuredBatchesPerSecond, "1"),
      measured(cpu.measuredCpuMs, "ms"),
      measured(cpu.profiledCpuMs, "ms"),
    ]),
  };
}

/** Writes the page. */
export function writePlan(plan: Plan, path: string): void {
  writePage(renderPlan(plan), path);
}

/** Returns the page as HTML. */
export function renderPlan(plan: Plan): string {
  const { measured: profile, modelled: sweep, assumed } = plan;
  const [finding = "", ...rest] = recommendation(plan);
  const more = [...rest, ...unverifiedLines(plan)];
  const [measuredFinding = "", ...measuredMore] = profileLines(plan);
  const { prices } = assumed;
  const facts = renderFacts([
    ["Run", `${plan.startedAt.slice(0, 16).replace("T", " ")} UTC`],
    ["Pipeline", plan.module],
    ["Step", `${assumed.stepMs} ms`],
    ["Trainers", `${assumed.trainers}`],
    [
      "Network",
      `${formatNumber(assumed.networkBytesPerSecond / BYTES_PER_MB, 0)} MB/s a host, ${
        formatNumber(assumed.roundTripMs, 1)
      } ms there and back`,
    ],
    [
      "Prices",
      `${formatNumber(prices.cpuPerCoreHour)} USD a core and hour, ${
        formatNumber(prices.memoryPerGBHour)
      } a GB, ${formatNumber(prices.acceleratorPerHour)} an accelerator`,
    ],
  ], plan.commandLine);
  const clusters = renderSection({
    ...{ id: "clusters", letter: "a", title: "How many workers", finding },
    figures: figuresOf(sweep),
    table: clusterTable(sweep),
    notes: more,
  });
  const pipeline = renderSection({
    ...{ id: "pipeline", letter: "b", title: "What a batch takes", finding: measuredFinding },
    figures: [],
    table: operatorTable(profile),
    notes: measuredMore,
  });
  const verified = plan.verified.length === 0 ? "" : renderSection({
    ...{ id: "verified", letter: "c", title: "The model compared with reality" },
    finding: VERIFIED_NOTE,
    figures: [],
    table: verifiedTable(plan.verified),
    notes: [],
  });
  const main = `<header>
<p class="brand">Leat</p>
<h1>How many workers a pipeline wants</h1>
<p class="lead">What a batch takes was measured; what clusters do with it was simulated.</p>
${facts}
</header>
${clusters}
${pipeline}
${verified}`;
  return renderPage({ title: "Leat: plan", main, results: plan });
}

function figuresOf({ colocated, runs }: Sweep): Figure[] {
  const figure = (
    title: string,
    yLabel: string,
    unit: Unit,
    valuesOf: (run: ClusterRun) => { expected: number; slow?: number; fast?: number },
  ) => {
    const line = (
      name: string,
      index: number,
      valueOf: (run: ClusterRun) => number | undefined,
    ) => ({
      ...{ name, color: seriesColor(index) },
      points: runs.flatMap((run) => {
        const y = valueOf(run);
        return y === undefined ? [] : [{ x: run.workers, ...point(modelled(y, unit)) }];
      }),
    });
    const series: ChartSeries[] = [
      line("expected", 0, (run) => valuesOf(run).expected),
      line("slow stretches", 1, (run) => valuesOf(run).slow),
      line("fast stretches", 2, (run) => valuesOf(run).fast),
    ];
    return drawLines({
      ...{ title, yLabel, xLabel: "workers", xScale: "log", ySuffix: ` ${yLabel}`, markers: [] },
      description: `${title} against the number of workers, simulated.`,
      series: series.filter(({ points }) => points.length > 0),
      references: [{
        ...{ name: "colocated", color: seriesColor(3) },
        ...point(modelled(valuesOf(colocated).expected, unit)),
      }],
    });
  };
  return [
    figure("Throughput", "batches/s", "batches/s", ({ batchesPerSecond }) => ({
      expected: batchesPerSecond.expected,
      slow: batchesPerSecond.low,
      fast: batchesPerSecond.high,
    })),
    figure("Time accelerators wait", "%", "1", ({ stall }) => ({
      expected: 100 * stall.expected,
      slow: 100 * stall.high,
      fast: 100 * stall.low,
    })),
    figure(`Cost of ${STEPS} steps`, "USD", "USD", (run) => ({ expected: run.dollars })),
  ];
}

function point({ value, provenance }: Quantity) {
  return { y: value, provenance };
}

function sizeText({ workers }: ClusterRun): string {
  return workers === 0
    ? "colocated, without workers"
    : `${workers} ${workers === 1 ? "worker" : "workers"}`;
}

function dollars(run: ClusterRun): string {
  return `${formatNumber(run.dollars, 4)} USD`;
}

function rate(batchesPerSecond: number): string {
  return `${formatNumber(batchesPerSecond)} batches/s`;
}

function megabytes(bytes: number): string {
  return formatNumber(bytes / BYTES_PER_MB);
}

/** The default memory of a worker: what this process used. */
export function memoryGBOf(profile: Profile): number {
  return inGB(profile.memoryBytes);
}
