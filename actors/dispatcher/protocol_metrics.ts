/**
 * The table of metrics. A figure is declared here once. The heartbeat's field and its check, the
 * description, the live page, `status`, `/metrics` and docs/reference/metrics.md follow from it.
 */
import { type KnownOrigin, type Metric, metricOf, type MetricRow } from "./metric.ts";

/**
 * All figures, by what they describe; {@linkcode MetricRow} explains a row. Columns are in the
 * order of their figures.
 */
// deno-fmt-ignore: one figure a line
export const METRICS = {
  states: {
    workers: ["computed", "leat_workers", "workers", "Workers by state."],
  },
  cluster: {
    unreachableWorkers: ["computed", "leat_unreachable_workers", "workers", "Live workers whose advertised address does not answer."],
    jobs: ["computed", "leat_jobs", "number", "Jobs that the dispatcher keeps."],
    clients: ["computed", "leat_clients", "number", "Clients that read."],
    optimalWorkers: ["computed", "leat_optimal_workers", "workers", "How many workers the clients of the most demanding job could use."],
    journalWaits: ["computed", "leat_journal_waits", "flag", "1 while the disk of the dispatcher's journal is full and its answers wait for space."],
    wantedWorkers: ["computed", "leat_wanted_workers", "workers", "Workers wanted by autoscaling: raised at once, lowered slowly, within the limits."],
  },
  /** By job and kind. */
  scaling: {
    wanted: ["computed", "leat_job_wanted_workers", "workers", "Workers that a job wants; `kind` is `more`, `enough`, `limited`, `fixed` or `unknown`."],
  },
  worker: {
    up: ["computed", "leat_worker_up", "flag", "1 while the worker sends heartbeats."],
    tasks: ["computed", "leat_worker_tasks", "number", "Tasks of the worker."],
    busyShare: ["computed", "leat_worker_busy_ratio", "share", "The busy share of its busiest pipeline, over the last seconds."],
  },
  process: {
    cpuCores: [{ rate: "cpuSeconds" }, null, "cores", "Cores that its process uses.", "CPU cores"],
    cpuSeconds: ["counter", "leat_worker_cpu_seconds_total", "seconds", "CPU time of the worker's process and of its runners' processes, if it has a process of its own."],
    memoryBytes: ["level", "leat_worker_memory_bytes", "bytes", "Resident memory of the worker's process and of its runners' processes, if it has a process of its own.", "memory"],
    runawayThreads: ["optional", "leat_worker_runaway_threads", "threads", "Threads that cannot be ended; each occupies a core until the worker restarts."],
  },
  task: {
    busyShare: [{ share: "busyMs", of: "time" }, null, "share", "The share of time its pipeline works.", "pipelines at work"],
    elementsPerSecond: [{ rate: "produced" }, null, "elements/s", "Elements produced.", "elements/s"],
    bytesPerSecond: [{ rate: "servedBytes" }, null, "bytes/s", "Bytes handed out.", "data/s"],
    produced: ["counter", "leat_task_produced_elements_total", "elements", "Elements produced."],
    served: ["counter", "leat_task_served_elements_total", "elements", "Elements handed out, to clients or to the cache or scheduler in front of the task."],
    servedBytes: ["counter", "leat_task_served_bytes_total", "bytes", "Bytes handed out."],
    bytesRead: ["counter", "leat_task_read_bytes_total", "bytes", "Bytes read from files."],
    busyMs: ["counter", "leat_task_busy_seconds_total", "ms", "Time at work."],
    bufferedBytes: ["level", "leat_task_buffered_bytes", "bytes", "Elements produced and not fetched."],
    waiting: ["level", "leat_task_waiting_requests", "requests", "Requests that wait for an element."],
    runnerRestarts: ["counter", "leat_task_runner_restarts_total", "number", "How often its runner died and was restarted."],
    bytesReadPerSecond: [{ rate: "bytesRead" }, null, "bytes/s", "Bytes read from files."],
    processingMs: [{ mean: "busyMs", per: "produced" }, "leat_task_processing_seconds", "ms", "Recent time to produce an element."],
  },
  compression: {
    compressing: ["computed", "leat_task_compressing", "flag", "1 while the task's elements are compressed."],
    bytes: ["counter", "leat_task_compression_input_bytes_total", "bytes", "Bytes of elements before compression."],
    compressedBytes: ["counter", "leat_task_compression_output_bytes_total", "bytes", "Bytes of elements after compression."],
    ms: ["counter", "leat_task_compression_seconds_total", "ms", "Time spent compressing, probes of whether it pays included."],
  },
  sharing: {
    hitRate: [{ quotient: "hits", per: "served" }, "leat_sharing_hit_ratio", "share", "The share of elements that were in the window when a trainer asked.", "hits"],
    trainers: ["level", "leat_sharing_trainers", "number", "Trainers with a pointer in the window.", "trainers"],
    windowBytes: ["level", "leat_sharing_window_bytes", "bytes", "Size of the sliding window now.", "size"],
    windowBytesMax: ["level", "leat_sharing_window_max_bytes", "bytes", "Largest size of the window: its part of the worker's `windowBytesMax`.", "at most"],
    elements: ["level", "leat_sharing_window_elements", "elements", "Elements in the window."],
    produced: ["counter", "leat_sharing_produced_elements_total", "elements", "Elements taken in.", "produced"],
    served: ["counter", "leat_sharing_served_elements_total", "elements", "Elements given to trainers.", "given to trainers"],
    skipped: ["counter", "leat_sharing_skipped_elements_total", "elements", "Elements that trainers missed because the window had moved on.", "missed"],
    hits: ["counter", "leat_sharing_hits_total", "elements", "Elements that were in the window when a trainer asked."],
    misses: ["counter", "leat_sharing_misses_total", "elements", "Elements that were produced while a trainer waited."],
  },
  client: {
    waitingShare: [{ share: "waitingMs", of: ["waitingMs", "trainingMs", "decodingMs"] }, null, "share", "The share of time the training loop waits for elements.", "waits for elements"],
    elementsPerSecond: [{ rate: "elements" }, null, "elements/s", "Elements taken.", "elements/s"],
    bytesPerSecond: [{ rate: "bytes" }, null, "bytes/s", "Bytes taken.", "data/s"],
    decodingShare: [{ share: "decodingMs", of: ["waitingMs", "trainingMs", "decodingMs"] }, null, "share", "The share of time that decoding takes on the loop's thread.", "decodes"],
    unpackingShare: [{ share: "unpackingMs", of: ["waitingMs", "trainingMs", "decodingMs"] }, null, "share", "The share of time that decompression takes on the loop's thread.", "unpacks"],
    targetProcessingMs: [{ mean: "trainingMs", per: "elements" }, "leat_client_target_processing_seconds", "ms", "Recent time of the training loop per element, without waiting.", "needs per element"],
    inFlight: ["level", "leat_client_open_requests", "requests", "Open requests to workers.", "in flight"],
    bufferedBytes: ["level", "leat_client_buffered_bytes", "bytes", "Elements that arrived and were not taken.", "buffered"],
    elements: ["counter", "leat_client_elements_total", "elements", "Elements that the training loop has taken, failed ones included."],
    bytes: ["counter", "leat_client_bytes_total", "bytes", "Bytes that the training loop has taken."],
    skipped: ["counter", "leat_client_skipped_elements_total", "elements", "Elements that a trainer has missed because they had left the sharing window."],
    waitingMs: ["counter", "leat_client_waiting_seconds_total", "ms", "How long the training loop has waited for elements."],
    trainingMs: ["counter", "leat_client_training_seconds_total", "ms", "How long the training loop was busy between elements."],
    decodingMs: ["counter", "leat_client_decoding_seconds_total", "ms", "How long decoding took; part of neither waiting nor training."],
    unpackingMs: ["counter", "leat_client_unpacking_seconds_total", "ms", "How long decompressing elements on arrival took; overlaps waiting and training."],
    wireBytes: ["counter", "leat_client_wire_bytes_total", "bytes", "Bytes received from workers, compressed where they were."],
    wireBytesPerSecond: [{ rate: "wireBytes" }, null, "bytes/s", "Bytes received, before decompression."],
    offloadRatio: ["optional", "leat_client_offload_ratio", "share", "The share of its elements that workers are to prepare, if `offload()` reads.", "offloaded"],
    offloadWorkers: ["optional", "leat_client_offload_workers", "number", "With how many workers its training would not wait, as measured when `offload()` was planned.", "could use"],
  },
  /** DETERMINISTIC: a reader's cost of keeping the order. */
  order: {
    headOfLineMs: ["optional", null, "ms", "Time spent waiting for one split while elements of others were buffered."],
    bufferedBytesMax: ["optional", null, "bytes", "The most bytes buffered at the client so far, those for the training loop included."],
    openSplitsMax: ["optional", null, "splits", "The most splits open at once so far; at most the dispatcher's `windowSplits`."],
  },
  read: {
    outstanding: ["level", "leat_read_open_requests", "requests", "Open requests."],
    elements: ["counter", null, "elements", "Elements received."],
    bytes: ["counter", null, "bytes", "Their encoded size."],
    wireBytes: ["counter", null, "bytes", "Bytes received, before decompression."],
    answerMs: ["counter", null, "ms", "How long requests were open, in total."],
    heldMs: ["counter", null, "ms", "The part of that time in which the element was not produced."],
    roundTripMs: ["optional", "leat_read_round_trip_seconds", "ms", "Recent round trip of an empty message over a network."],
    slotBytes: ["optional", null, "bytes", "The part of `wireBytes` that came through a file shared with a worker of the same host."],
    elementsPerSecond: [{ rate: "elements" }, null, "elements/s", "Elements received."],
    bytesPerSecond: [{ rate: "bytes" }, null, "bytes/s", "Their encoded size."],
    wireBytesPerSecond: [{ rate: "wireBytes" }, null, "bytes/s", "Bytes received, before decompression."],
    meanAnswerMs: [{ mean: "answerMs", per: "elements" }, "leat_read_answer_seconds", "ms", "Recent time from a request to its element."],
    meanHeldMs: [{ mean: "heldMs", per: "elements" }, "leat_read_held_seconds", "ms", "The part of that time in which the element was not produced."],
  },
  splits: {
    total: ["computed", "leat_splits", "splits", "Splits of the current repetition."],
    handedOut: ["computed", "leat_splits_handed_out", "splits", "Splits of the current repetition that are assigned."],
  },
  job: {
    workerCpuHours: ["computed", "leat_job_worker_cpu_seconds_total", "hours", "CPU time of workers that are processes, divided between their jobs by pipeline work."],
    workerMemoryGBHours: ["computed", "leat_job_worker_memory_byte_seconds_total", "GB·hours", "Memory of workers that are processes, times time, divided evenly between their tasks."],
    workerBusyHours: ["computed", "leat_job_worker_busy_seconds_total", "hours", "How long pipelines worked, summed over tasks."],
    clientHours: ["computed", "leat_job_client_seconds_total", "hours", "How long clients were connected, summed over clients."],
  },
} as const;

/** The name of a group of figures. */
export type MetricGroup = keyof typeof METRICS;

/** The keys of a group's figures of one origin. */
export type MetricKey<G extends MetricGroup, Origin> = {
  [K in keyof typeof METRICS[G]]: typeof METRICS[G][K] extends readonly [Origin, ...unknown[]] ? K
    : never;
}[keyof typeof METRICS[G]];

/** The figures of a group in a heartbeat. */
export type Reported<G extends MetricGroup> =
  & { readonly [K in MetricKey<G, "counter" | "level">]: number }
  & { readonly [K in MetricKey<G, "optional">]?: number };

/** The figures of a group for people; null: not known. */
export type Described<G extends MetricGroup> = {
  readonly [K in keyof typeof METRICS[G]]: K extends MetricKey<G, KnownOrigin> ? number
    : number | null;
};

type MetricList = readonly (readonly [key: string, metric: Metric])[];

/** The rows of every group, listed once, because every heartbeat needs some. */
const LISTS: ReadonlyMap<string, MetricList> = new Map(
  Object.entries(METRICS).map(([group, rows]) => [
    group,
    Object.entries<MetricRow>(rows).map(([key, row]) => [key, metricOf(row)]),
  ]),
);

const COUNTERS: ReadonlyMap<string, readonly string[]> = new Map(
  [...LISTS].map(([group, metrics]) => [
    group,
    metrics.filter(([, { origin }]) => origin === "counter").map(([key]) => key),
  ]),
);

export function metricsOf(group: MetricGroup): MetricList {
  return LISTS.get(group)!;
}

/** The keys of a group's counters. */
export function counterKeysOf(group: MetricGroup): readonly string[] {
  return COUNTERS.get(group)!;
}
