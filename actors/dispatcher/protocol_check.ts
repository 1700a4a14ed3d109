/** Checks the shapes of requests to the dispatcher, before anything is decided or journaled. */
import * as v from "valibot";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import {
  bytes,
  checksOf,
  count,
  exactObject,
  fencedRef,
  figure,
  flag,
  list,
  name,
  nothing,
  object,
  oneOf,
  optional,
  reason,
  text,
  textUpTo,
  wireError,
  word,
} from "../runtime/checks.ts";
import type { CompressionFigures, ElementSourceStats } from "../worker/protocol.ts";
import type { DispatcherProtocol } from "./protocol.ts";
import type { RoundWait } from "./protocol_figures.ts";

/** Most tags of a job or a worker. */
export const TAGS_MAX = 64;
/** Most characters of a sharding policy's function, with what it captures. */
export const POLICY_LENGTH_MAX = 2 ** 20;
/** Most tasks of a worker. */
const TASKS_MAX = 2 ** 20;

const tags = list(name, TAGS_MAX);

/** The fields of a dataset in any message. */
export const datasetFields = {
  graph: bytes,
  fingerprint: text,
  cardinality: v.custom<number>(
    // `repeat` can make the count exceed the safe integers.
    (value) => Number.isInteger(value) && value as number >= -2,
    "a count, -1 (without end) or -2 (unknown)",
  ),
  compression: optional(oneOf("none", "zstd", "gzip")),
};

/** The settings of a distributed save. */
export const saveSettings = exactObject({
  folder: text,
  compression: optional(oneOf("gzip")),
  chunkBytesMax: optional(count),
  overwrite: flag,
  fingerprint: text,
});

const parameters = exactObject({
  datasetId: name,
  processingMode: oneOf(...Object.values(ShardingPolicy), "CUSTOM"),
  policy: optional(exactObject({ name, shard: textUpTo(POLICY_LENGTH_MAX) })),
  numConsumers: optional(count),
  sharing: flag,
  targetWorkers: optional(oneOf("any", "local")),
  targetTags: optional(tags),
  ordered: optional(exactObject({ seed: name, shuffled: flag })),
  save: optional(saveSettings),
});

const orderFigures = {
  headOfLineMs: optional(figure),
  bufferedBytesMax: optional(figure),
  openSplitsMax: optional(figure),
};

const clientFigures = object({
  ...orderFigures,
  atMs: figure,
  elements: figure,
  bytes: figure,
  waitingMs: figure,
  trainingMs: figure,
  inFlight: figure,
  bufferedBytes: figure,
  skipped: optional(figure),
  decodingMs: optional(figure),
  unpackingMs: optional(figure),
  wireBytes: optional(figure),
  reads: optional(list(
    object({
      worker: name,
      taskId: count,
      elements: figure,
      bytes: figure,
      wireBytes: figure,
      outstanding: figure,
      answerMs: figure,
      heldMs: figure,
      roundTripMs: optional(figure),
    }),
  )),
});

/** The client figures that are kept; unknown ones, of a newer peer, are dropped. */
export const CLIENT_FIGURES: ReadonlySet<string> = new Set(Object.keys(clientFigures.entries));

const workerFigures = object({
  atMs: figure,
  draining: optional(flag),
  process: optional(object({
    cpuSeconds: figure,
    memoryBytes: figure,
    shared: flag,
    runawayThreads: optional(figure),
  })),
});

const sourceStats = {
  role: word<ElementSourceStats["role"]>(),
  produced: figure,
  served: figure,
  bufferedBytes: figure,
  bytesRead: figure,
  skipped: figure,
  sharing: optional(object({
    windowBytesMax: figure,
    elements: figure,
    trainers: figure,
    hits: figure,
    misses: figure,
  })),
};

const taskStats = object({
  ...sourceStats,
  servedBytes: figure,
  waiting: figure,
  busyMs: figure,
  runnerRestarts: figure,
  compression: optional(object({
    setting: word<CompressionFigures["setting"]>(),
    active: word<CompressionFigures["active"]>(),
    reason,
    bytes: figure,
    compressedBytes: figure,
    ms: figure,
  })),
  failure: optional(reason),
});

const taskStatus = object({
  taskId: count,
  source: optional(fencedRef),
  completed: flag,
  failed: optional(flag),
  stats: optional(taskStats),
  frontStats: optional(object(sourceStats)),
});

/** The check of each request. */
export const dispatcherChecks = checksOf<DispatcherProtocol>()({
  hello: nothing,
  registerDataset: object({
    ...datasetFields,
    datasetId: optional(name),
    transient: optional(v.literal(true, "true, or left out")),
  }),
  getDataset: object({ datasetId: name }),
  openIteration: object({
    requestId: name,
    secret: optional(name),
    jobName: optional(name),
    parameters,
    repetition: count,
    consumerIndex: optional(count),
    process: optional(name),
    startAt: optional(count),
    follows: optional(count),
    behind: optional(list(count)),
    stream: optional(name),
    restoration: optional(name),
    runId: optional(name),
    lastReader: optional(object({ clusterId: name, clientId: count })),
  }),
  clientHeartbeat: object({
    clientId: count,
    secret: optional(name),
    nextRound: optional(count),
    deliveredRound: optional(count),
    waitsFor: optional(word<RoundWait>()),
    endRound: optional(count),
    acceptedSchedule: optional(count),
    scheduleInForce: optional(count),
    knownSchedule: optional(count),
    heldRounds: optional(list(count)),
    mark: optional(count),
    done: optional(list(count)),
    lostTasks: optional(list(object({ taskId: count, round: optional(count) }))),
    taskList: optional(name),
    figures: optional(clientFigures),
  }),
  releaseClient: object({ clientId: count, secret: optional(name), cancel: optional(flag) }),
  workerHeartbeat: object({
    name,
    worker: fencedRef,
    tags,
    process: optional(name),
    isPrivate: optional(flag),
    tasks: list(taskStatus, TASKS_MAX),
    leaving: optional(flag),
    follows: optional(name),
    figures: optional(workerFigures),
  }),
  getSplit: object({
    taskId: count,
    number: count,
    source: count,
    repetition: count,
    spare: optional(flag),
  }),
  getSaveWork: object({
    taskId: count,
    done: optional(object({
      work: oneOf("run", "entry"),
      place: count,
      attempt: optional(name),
      elements: count,
      sizeBytes: count,
    })),
    failed: optional(wireError),
    isLast: optional(flag),
  }),
  runnerDied: object({
    taskId: count,
    number: count,
    place: optional(count),
    error: wireError,
  }),
  describe: v.nullable(object({ refresh: optional(flag) })),
});
