/** The state of a dispatcher as metrics in Prometheus' text format. */
import type { DispatcherDescription } from "../../actors/dispatcher/protocol.ts";
import type {
  ClientRates,
  JobUsage,
  ReadDescription,
  SharingDescription,
  TaskRates,
} from "../../actors/dispatcher/protocol_figures.ts";

const MS = 1e-3;
const SECONDS_PER_HOUR = 3_600;
const BYTES_PER_GB = 1e9;

type Labels = Readonly<Record<string, string | number>>;
type Sample = readonly [labels: Labels, value: number];

/** A metric: its name, and how to read it. Names of counters end in `_total`. */
interface Metric {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly samples: (cluster: DispatcherDescription) => readonly Sample[];
}

type Worker = DispatcherDescription["workers"][number];
type Job = DispatcherDescription["jobs"][number];

/** The metrics of one worker. */
const worker = (
  name: string,
  help: string,
  of: (worker: Worker) => number | undefined,
): Metric => ({
  name,
  help,
  labels: ["worker"],
  samples: ({ workers }) =>
    workers.flatMap((one) => known(of(one)).map((value): Sample => [{ worker: one.name }, value])),
});

/** The metrics of one task. */
const task = (name: string, help: string, of: (task: TaskRates) => number | null): Metric => ({
  name,
  help,
  labels: ["job", "iteration", "worker"],
  samples: ({ jobs }) =>
    iterationsOf(jobs).flatMap(({ labels, iteration }) =>
      iteration.tasks.flatMap(({ worker, figures }) =>
        known(figures && of(figures)).map((value): Sample => [{ ...labels, worker }, value])
      )
    ),
});

/** The metrics of a sharing window. */
const sharing = (
  name: string,
  help: string,
  of: (window: SharingDescription) => number | null,
): Metric => task(name, help, (figures) => figures.sharing && of(figures.sharing));

/** The metrics of one client. */
const client = (
  name: string,
  help: string,
  of: (client: ClientRates) => number | null,
): Metric => ({
  name,
  help,
  labels: ["job", "iteration", "client"],
  samples: ({ jobs }) =>
    iterationsOf(jobs).flatMap(({ labels, iteration }) =>
      iteration.readers.flatMap(({ clientId, figures }) =>
        known(figures && of(figures))
          .map((value): Sample => [{ ...labels, client: clientId }, value])
      )
    ),
});

/** The metrics of how one client reads one worker's task. */
const read = (
  name: string,
  help: string,
  of: (read: ReadDescription) => number | null,
): Metric => ({
  name,
  help,
  labels: ["job", "iteration", "client", "worker"],
  samples: ({ jobs }) =>
    iterationsOf(jobs).flatMap(({ labels, iteration }) =>
      iteration.readers.flatMap(({ clientId: client, figures }) =>
        (figures?.reads ?? []).flatMap((one) =>
          known(of(one)).map((value): Sample => [{ ...labels, client, worker: one.worker }, value])
        )
      )
    ),
});

/** The metrics of one source of splits. */
const splits = (
  name: string,
  help: string,
  of: (splits: Job["iterations"][number]["splits"][number]) => number,
): Metric => ({
  name,
  help,
  labels: ["job", "iteration", "source"],
  samples: ({ jobs }) =>
    iterationsOf(jobs).flatMap(({ labels, iteration }) =>
      iteration.splits.map((one, source): Sample => [{ ...labels, source }, of(one)])
    ),
});

/** What one job has used. */
const usage = (name: string, help: string, of: (usage: JobUsage) => number | null): Metric => ({
  name,
  help,
  labels: ["job"],
  samples: ({ jobs }) =>
    jobs.flatMap((job) => known(of(job.usage)).map((value): Sample => [{ job: job.name }, value])),
});

/** A number of the whole cluster. */
const cluster = (
  name: string,
  help: string,
  of: (cluster: DispatcherDescription) => number | undefined,
): Metric => ({
  name,
  help,
  labels: [],
  samples: (all) => known(of(all)).map((value): Sample => [{}, value]),
});

const STATES = ["working", "idle", "starting", "gone"] as const;

/** All metrics; docs/cluster.md has the table. */
export const METRICS: readonly Metric[] = [
  {
    name: "leat_workers",
    help: "Workers by state.",
    labels: ["state"],
    samples: ({ workers }) =>
      STATES.map((state) => [
        { state },
        workers.filter(({ activity }) => activity.state === state).length,
      ]),
  },
  cluster(
    "leat_unreachable_workers",
    "Live workers whose advertised address does not answer.",
    ({ workers }) =>
      workers.filter(({ alive, unreachable }) => alive && unreachable !== undefined).length,
  ),
  cluster("leat_jobs", "Jobs that the dispatcher keeps.", ({ jobs }) => jobs.length),
  cluster(
    "leat_clients",
    "Clients that read.",
    ({ jobs }) => iterationsOf(jobs).reduce((sum, { iteration }) => sum + iteration.clients, 0),
  ),
  cluster(
    "leat_optimal_workers",
    "Workers that the clients could use: the rates they need over the rate of one worker, for the job that needs most.",
    ({ jobs }) => {
      const wanted = iterationsOf(jobs).flatMap(({ iteration }) => known(iteration.optimalWorkers));
      return wanted.length === 0 ? undefined : Math.max(...wanted);
    },
  ),
  cluster(
    "leat_journal_waits",
    "1 while the disk of the dispatcher's journal is full and its answers wait for space.",
    ({ journal }) => journal === undefined ? 0 : 1,
  ),
  cluster(
    "leat_wanted_workers",
    "Workers wanted by autoscaling: raised at once, lowered slowly, within the limits.",
    ({ scaling }) => scaling.wanted,
  ),
  {
    name: "leat_job_wanted_workers",
    help: "Workers that a job wants.",
    labels: ["job", "kind"],
    samples: ({ scaling }) =>
      scaling.jobs.map(({ name, kind, wanted }) => [{ job: name, kind }, wanted]),
  },
  worker("leat_worker_up", "1 while the worker sends heartbeats.", ({ alive }) => alive ? 1 : 0),
  worker("leat_worker_tasks", "Tasks of the worker.", ({ tasks }) => tasks),
  worker(
    "leat_worker_busy_ratio",
    "The busy share of its busiest pipeline, over the last seconds.",
    ({ figures }) => figures?.busyShare,
  ),
  worker(
    "leat_worker_cpu_seconds_total",
    "CPU time of the worker's process, if it has one of its own.",
    ({ figures }) => ownProcess(figures)?.cpuSeconds,
  ),
  worker(
    "leat_worker_memory_bytes",
    "Resident memory of the worker's process, if it has one of its own.",
    ({ figures }) => ownProcess(figures)?.memoryBytes,
  ),
  worker(
    "leat_worker_runaway_threads",
    "Threads that ignored the request to end: each occupies a core until the worker is restarted.",
    ({ figures }) => figures?.process == null ? undefined : figures.process.runawayThreads ?? 0,
  ),
  task("leat_task_produced_elements_total", "Elements produced.", ({ produced }) => produced),
  task("leat_task_served_elements_total", "Elements handed out.", ({ served }) => served),
  task("leat_task_served_bytes_total", "Bytes handed out.", ({ servedBytes }) => servedBytes),
  task("leat_task_read_bytes_total", "Bytes read from files.", ({ bytesRead }) => bytesRead),
  task("leat_task_busy_seconds_total", "Time at work.", ({ busyMs }) => MS * busyMs),
  task(
    "leat_task_processing_seconds",
    "Recent time to produce an element.",
    ({ processingMs }) => processingMs === null ? null : MS * processingMs,
  ),
  task(
    "leat_task_buffered_bytes",
    "Elements produced and not fetched.",
    ({ bufferedBytes }) => bufferedBytes,
  ),
  task(
    "leat_task_waiting_requests",
    "Requests that wait for an element.",
    ({ waiting }) => waiting,
  ),
  task(
    "leat_task_runner_restarts_total",
    "How often its runner died and was restarted.",
    ({ runnerRestarts }) => runnerRestarts,
  ),
  task(
    "leat_task_compressing",
    "1 while its elements are compressed.",
    ({ compression }) => compression && (compression.active === "none" ? 0 : 1),
  ),
  task(
    "leat_task_compression_input_bytes_total",
    "Bytes of elements before compression.",
    ({ compression }) => compression && compression.bytes,
  ),
  task(
    "leat_task_compression_output_bytes_total",
    "Bytes of elements after compression.",
    ({ compression }) => compression && compression.compressedBytes,
  ),
  task(
    "leat_task_compression_seconds_total",
    "Time spent compressing, probes of whether it pays included.",
    ({ compression }) => compression && MS * compression.ms,
  ),
  sharing("leat_sharing_window_bytes", "Size of the sliding window.", (one) => one.windowBytes),
  sharing(
    "leat_sharing_window_max_bytes",
    "Largest size of the sliding window.",
    (one) => one.windowBytesMax,
  ),
  sharing("leat_sharing_window_elements", "Elements in the window.", (one) => one.elements),
  sharing("leat_sharing_trainers", "Trainers that read the window.", (one) => one.trainers),
  sharing("leat_sharing_produced_elements_total", "Elements taken in.", (one) => one.produced),
  sharing("leat_sharing_served_elements_total", "Elements given to trainers.", (one) => one.served),
  sharing(
    "leat_sharing_skipped_elements_total",
    "Elements that trainers missed.",
    (one) => one.skipped,
  ),
  sharing(
    "leat_sharing_hits_total",
    "Elements that were in the window when a trainer asked.",
    (one) => one.hits,
  ),
  sharing(
    "leat_sharing_misses_total",
    "Elements that were produced while a trainer waited.",
    (one) => one.misses,
  ),
  sharing(
    "leat_sharing_hit_ratio",
    "The share of a trainer's elements that were in the window when it asked.",
    ({ hitRate }) => hitRate,
  ),
  client(
    "leat_client_elements_total",
    "Elements that the training loop has taken.",
    ({ elements }) => elements,
  ),
  client(
    "leat_client_bytes_total",
    "Bytes that the training loop has taken.",
    ({ bytes }) => bytes,
  ),
  client(
    "leat_client_skipped_elements_total",
    "Elements that a trainer has missed because they had left the sharing window.",
    ({ skipped = 0 }) => skipped,
  ),
  client(
    "leat_client_waiting_seconds_total",
    "How long the training loop has waited for elements.",
    ({ waitingMs }) => MS * waitingMs,
  ),
  client(
    "leat_client_training_seconds_total",
    "How long the training loop was busy between elements.",
    ({ trainingMs }) => MS * trainingMs,
  ),
  client(
    "leat_client_target_processing_seconds",
    "Recent time of the training loop per element.",
    ({ targetProcessingMs }) => targetProcessingMs === null ? null : MS * targetProcessingMs,
  ),
  client(
    "leat_client_decoding_seconds_total",
    "How long decoding took.",
    ({ decodingMs = 0 }) => MS * decodingMs,
  ),
  client(
    "leat_client_unpacking_seconds_total",
    "How long decompressing elements took.",
    ({ unpackingMs = 0 }) => MS * unpackingMs,
  ),
  client(
    "leat_client_wire_bytes_total",
    "Bytes received from workers, compressed where they were.",
    ({ wireBytes = 0 }) => wireBytes,
  ),
  client("leat_client_open_requests", "Open requests to workers.", (one) => one.inFlight),
  client(
    "leat_client_buffered_bytes",
    "Elements that arrived and were not taken.",
    (one) => one.bufferedBytes,
  ),
  read(
    "leat_read_answer_seconds",
    "Recent time from a request to its element.",
    ({ answerMs }) => answerMs === null ? null : MS * answerMs,
  ),
  read(
    "leat_read_held_seconds",
    "The part of that time in which the element was not produced.",
    ({ heldMs }) => heldMs === null ? null : MS * heldMs,
  ),
  read(
    "leat_read_round_trip_seconds",
    "Recent round trip of an empty message over a network.",
    ({ roundTripMs }) => roundTripMs === null ? null : MS * roundTripMs,
  ),
  read("leat_read_open_requests", "Open requests.", (one) => one.outstanding),
  splits("leat_splits", "Splits of the current repetition.", ({ total }) => total),
  splits(
    "leat_splits_handed_out",
    "Splits of the current repetition that are assigned.",
    ({ handedOut }) => handedOut,
  ),
  usage(
    "leat_job_worker_cpu_seconds_total",
    "CPU time of workers, if each has a process of its own.",
    ({ workerCpuHours }) => workerCpuHours === null ? null : SECONDS_PER_HOUR * workerCpuHours,
  ),
  usage(
    "leat_job_worker_memory_byte_seconds_total",
    "Memory of workers times time, if each has a process of its own.",
    ({ workerMemoryGBHours: hours }) =>
      hours === null ? null : SECONDS_PER_HOUR * BYTES_PER_GB * hours,
  ),
  usage(
    "leat_job_worker_busy_seconds_total",
    "How long pipelines worked.",
    ({ workerBusyHours }) => SECONDS_PER_HOUR * workerBusyHours,
  ),
  usage(
    "leat_job_client_seconds_total",
    "How long clients were connected.",
    ({ clientHours }) => SECONDS_PER_HOUR * clientHours,
  ),
];

/** A scrape: the text, and its media type. */
export async function metricsOf(
  description: DispatcherDescription,
): Promise<{ readonly text: string; readonly contentType: string }> {
  // Loaded at the first scrape: a trainer never needs it.
  const { Counter, Gauge, Registry } = await import("prom-client");
  const registry = new Registry();
  for (const { name, help, labels, samples } of METRICS) {
    const values = samples(description);
    // A metric without labels would report 0 until it is set, but unknown is not 0.
    if (values.length === 0 && labels.length === 0) continue;
    const configuration = { name, help, labelNames: [...labels], registers: [registry] };
    if (name.endsWith("_total")) {
      const counter = new Counter(configuration);
      for (const [at, value] of values) counter.inc({ ...at }, value);
    } else {
      const gauge = new Gauge(configuration);
      for (const [at, value] of values) gauge.set({ ...at }, value);
    }
  }
  return { text: await registry.metrics(), contentType: registry.contentType };
}

function iterationsOf(jobs: readonly Job[]) {
  return jobs.flatMap(({ name: job, iterations }) =>
    iterations.map((iteration) => ({
      labels: { job, iteration: iteration.repetition },
      iteration,
    }))
  );
}

function ownProcess(figures: Worker["figures"]) {
  return figures?.process?.shared === false ? figures.process : undefined;
}

function known(value: number | null | undefined): number[] {
  return value === null || value === undefined ? [] : [value];
}
