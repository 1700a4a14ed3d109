/** The state of a dispatcher as metrics in Prometheus' text format. */
import type { MetricUnit } from "../../actors/dispatcher/metric.ts";
import type {
  DispatcherDescription,
  TaskRates,
  WorkerRates,
} from "../../actors/dispatcher/protocol_figures.ts";
import { shownText } from "../../core/shown_text.ts";
import { type MetricGroup, METRICS, metricsOf } from "../../actors/dispatcher/protocol_metrics.ts";

/** Factors that convert Leat's units to those of Prometheus, where they differ. */
const FACTORS: { readonly [U in MetricUnit]?: number } = {
  "ms": 1e-3,
  "hours": 3_600,
  "GB·hours": 3_600 * 1e9,
};

const OF_TASK = ["job", "iteration", "worker"];
const OF_CLIENT = ["job", "iteration", "client"];

export const METRIC_LABELS: { readonly [G in MetricGroup]: readonly string[] } = {
  states: ["state"],
  cluster: [],
  scaling: ["job", "kind"],
  worker: ["worker"],
  process: ["worker"],
  task: OF_TASK,
  compression: OF_TASK,
  sharing: OF_TASK,
  client: OF_CLIENT,
  order: OF_CLIENT,
  read: [...OF_CLIENT, "worker"],
  splits: ["job", "iteration", "source"],
  job: ["job"],
};

const STATES = ["working", "idle", "starting", "silent", "gone"] as const;

type Labels = Readonly<Record<string, string | number>>;
/** The figures of one member of a group. Unknown or missing figures have no sample. */
type Row<G extends MetricGroup> = readonly [
  Labels,
  { readonly [K in keyof typeof METRICS[G]]?: number | null } | null | undefined,
];
type Job = DispatcherDescription["jobs"][number];

/** Where the figures of each group are in the description. */
const ROWS: { readonly [G in MetricGroup]: (state: DispatcherDescription) => readonly Row<G>[] } = {
  states: ({ workers }) =>
    STATES.map((state) => [
      { state },
      { workers: workers.filter(({ activity }) => activity.state === state).length },
    ]),
  cluster: ({ workers, jobs, journal, scaling }) => {
    const iterations = jobs.flatMap((job) => job.iterations);
    const wanted = iterations.flatMap(({ optimalWorkers }) => optimalWorkers ?? []);
    return [[{}, {
      unreachableWorkers: workers.filter(({ alive, unreachable }) =>
        alive && unreachable !== undefined
      ).length,
      jobs: jobs.length,
      clients: iterations.reduce((sum, { clients }) => sum + clients, 0),
      optimalWorkers: wanted.length === 0 ? null : Math.max(...wanted),
      journalWaits: journal === undefined ? 0 : 1,
      wantedWorkers: scaling.wanted,
    }]];
  },
  scaling: ({ scaling }) =>
    scaling.jobs.map(({ name, kind, wanted }) => [{ job: name, kind }, { wanted }]),
  worker: ({ workers }) =>
    workers.map(({ name, alive, tasks, figures }) => [
      { worker: name },
      { up: alive ? 1 : 0, tasks, busyShare: figures?.busyShare ?? null },
    ]),
  process: ({ workers }) =>
    workers.map(({ name, figures }) => [{ worker: name }, ownFigures(figures?.process)]),
  task: tasksOf((figures) => figures),
  compression: tasksOf(({ compression }) =>
    compression && { ...compression, compressing: compression.active === "none" ? 0 : 1 }
  ),
  sharing: tasksOf(({ sharing }) => sharing),
  client: (state) => clientsOf(state).map(({ labels, figures }) => [labels, figures]),
  order: (state) => clientsOf(state).map(({ labels, figures }) => [labels, figures]),
  read: (state) =>
    clientsOf(state).flatMap(({ labels, figures }) =>
      (figures?.reads ?? []).map((read) => [{ ...labels, worker: read.worker }, read] as const)
    ),
  splits: ({ jobs }) =>
    iterationsOf(jobs).flatMap(({ labels, iteration }) =>
      iteration.splits.map((splits, source) => [{ ...labels, source }, splits] as const)
    ),
  job: ({ jobs }) => jobs.map(({ name, usage }) => [{ job: name }, usage]),
};

/** The answer to a scrape: the text, and its media type. */
export async function scrape(
  state: DispatcherDescription,
): Promise<{ readonly text: string; readonly contentType: string }> {
  // Loaded at the first scrape: a trainer never needs it.
  const { Counter, Gauge, Registry } = await import("prom-client");
  const registry = new Registry();
  for (const group of Object.keys(METRICS) as MetricGroup[]) {
    const labelNames = [...METRIC_LABELS[group]];
    const rows: readonly Row<MetricGroup>[] = ROWS[group](state);
    for (const [key, { name, unit, help }] of metricsOf(group)) {
      if (name === null) continue;
      const factor = FACTORS[unit] ?? 1;
      const isCounter = name.endsWith("_total");
      const samples = rows.flatMap(([labels, figures]) => {
        const figure = (figures as Readonly<Record<string, number | null>> | null)?.[key];
        if (figure === null || figure === undefined) return [];
        const value = factor * figure;
        // One sample that Prometheus would refuse must not hide all others.
        const isValid = Number.isFinite(value) && !(isCounter && value < 0);
        return isValid ? [{ labels: shown(labels), value }] : [];
      });
      // A metric without labels would report 0 until it is set, but unknown is not 0.
      if (samples.length === 0 && labelNames.length === 0) continue;
      const configuration = { name, help, labelNames, registers: [registry] };
      if (isCounter) {
        const counter = new Counter(configuration);
        for (const { labels, value } of samples) counter.inc(labels, value);
      } else {
        const gauge = new Gauge(configuration);
        for (const { labels, value } of samples) gauge.set(labels, value);
      }
    }
  }
  return { text: await registry.metrics(), contentType: registry.contentType };
}

/**
 * Escapes control characters: names are untrusted, and metrics are also read in terminals. Backslashes
 * are escaped, too, so that no two names have one label.
 */
function shown(labels: Labels): Record<string, string | number> {
  return Object.fromEntries(
    Object.entries(labels).map(([name, value]) => [
      name,
      typeof value === "string" ? shownText(value.replaceAll("\\", "\\\\")) : value,
    ]),
  );
}

function iterationsOf(jobs: readonly Job[]) {
  return jobs.flatMap(({ name: job, iterations }) =>
    iterations.map((iteration) => ({
      labels: { job, iteration: iteration.repetition },
      iteration,
    }))
  );
}

function clientsOf({ jobs }: DispatcherDescription) {
  return iterationsOf(jobs).flatMap(({ labels, iteration }) =>
    iteration.readers.map(({ clientId: client, figures }) => ({
      labels: { ...labels, client },
      figures,
    }))
  );
}

function tasksOf<F>(of: (figures: TaskRates) => F) {
  return ({ jobs }: DispatcherDescription) =>
    iterationsOf(jobs).flatMap(({ labels, iteration }) =>
      iteration.tasks.map(({ worker, figures }) =>
        [{ ...labels, worker }, figures && of(figures)] as const
      )
    );
}

/** A process's usage, unless several workers share the process. */
function ownFigures(process: WorkerRates["process"] | undefined) {
  return process?.shared === false
    ? { ...process, runawayThreads: process.runawayThreads ?? 0 }
    : null;
}
