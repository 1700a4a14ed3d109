/**
 * Checks the shapes of requests to the dispatcher, before anything is decided or journaled, and the
 * shapes of its answers, before clients and workers use them.
 */
import * as v from "valibot";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import {
  answerChecksOf,
  bytes,
  checksOf,
  count,
  duration,
  exactObject,
  fencedRef,
  figure,
  flag,
  list,
  name,
  nothing,
  object,
  oneKindOf,
  oneOf,
  optional,
  reason,
  text,
  textUpTo,
  upTo,
  wireError,
  word,
  workerName,
} from "../runtime/checks.ts";
import { type CompressionFigures, ROUNDS_AHEAD_MAX } from "../worker/protocol.ts";
import { type DispatcherProtocol, SPLITS_AT_ONCE_MAX } from "./protocol.ts";
import type { RoundWait } from "./protocol_figures.ts";
import { type MetricGroup, type MetricKey, metricsOf } from "./protocol_metrics.ts";

/** Limit of the tags of a job or a worker. */
const TAGS_MAX = 64;
/** Limit of the characters of a sharding policy's function, captured values included. */
const POLICY_LENGTH_MAX = 2 ** 20;
const TASKS_MAX = 2 ** 20;
/**
 * Limit of the positions of splits in a list: as many as a message of 4 MiB can hold. A reader may hold as
 * many splits as `windowSplits`, and a batch rows of as many as it has rows.
 */
const POSITIONS_MAX = 2 ** 22;
const positions = list(count, POSITIONS_MAX);

/** Requests of a task count from 1. Below the limit, a number and its followers are exact. */
const requestNumber = upTo(2 ** 52);
const tags = list(name, TAGS_MAX);

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

const clientFigures = object({
  ...figuresOf("client"),
  ...figuresOf("order"),
  atMs: figure,
  reads: optional(list(object({ ...figuresOf("read"), taskId: count, worker: name }))),
  unread: optional(reason),
});

const workerFigures = object({
  atMs: figure,
  draining: optional(flag),
  process: optional(object({ ...figuresOf("process"), shared: flag })),
});

const taskStats = object({
  ...figuresOf("task"),
  compression: optional(object({
    ...figuresOf("compression"),
    setting: word<CompressionFigures["setting"]>(),
    active: word<CompressionFigures["active"]>(),
    reason,
  })),
  failure: optional(reason),
});

const taskStatus = object({
  taskId: count,
  source: optional(fencedRef),
  completed: flag,
  failed: optional(flag),
  stats: optional(taskStats),
  sharing: optional(object(figuresOf("sharing"))),
});

type FigureChecks<G extends MetricGroup> =
  & { readonly [K in MetricKey<G, "counter" | "level">]: typeof figure }
  & {
    readonly [K in MetricKey<G, "optional">]: v.ExactOptionalSchema<typeof figure, undefined>;
  };

function figuresOf<G extends MetricGroup>(group: G): FigureChecks<G> {
  const fields = metricsOf(group).flatMap(([key, { origin }]): [string, v.GenericSchema][] => {
    if (origin === "counter" || origin === "level") return [[key, figure]];
    return origin === "optional" ? [[key, optional(figure)]] : [];
  });
  return Object.fromEntries(fields) as unknown as FigureChecks<G>;
}

const report = oneKindOf(
  object({
    kind: v.literal("rounds"),
    roundsAhead: optional(upTo(ROUNDS_AHEAD_MAX)),
    position: optional(object({
      kind: oneOf("reading", "ended"),
      nextRound: count,
      deliveredRound: count,
      waitsFor: optional(word<RoundWait>()),
    })),
    acceptedSchedule: optional(count),
    scheduleInForce: optional(count),
    knownSchedule: optional(count),
    heldRounds: optional(list(count)),
    lostTasks: optional(list(object({ taskId: count, round: optional(count) }))),
  }),
  object({ kind: v.literal("ordered"), mark: count, done: positions }),
);

const forTask = optional(object({ clusterId: name, taskId: count }));

export const dispatcherChecks = checksOf<DispatcherProtocol>()({
  hello: nothing,
  registerDataset: object({
    ...datasetFields,
    datasetId: optional(name),
    transient: optional(v.literal(true, "true, or left out")),
    forTask,
  }),
  getDataset: object({ datasetId: name, forTask }),
  openIteration: object({
    requestId: name,
    secret: optional(name),
    jobName: optional(name),
    parameters,
    repetition: count,
    consumerIndex: optional(count),
    process: optional(name),
    forTask,
    startAt: optional(count),
    follows: optional(count),
    behind: optional(positions),
    stream: optional(name),
    restoration: optional(name),
    runId: optional(name),
    iterator: optional(count),
    lastReader: optional(object({ clusterId: name, clientId: count })),
  }),
  clientHeartbeat: object({
    clientId: count,
    secret: optional(name),
    report: optional(report),
    taskList: optional(name),
    figures: optional(clientFigures),
  }),
  releaseClient: object({
    clientId: count,
    secret: optional(name),
    cancel: optional(flag),
    nextRound: optional(count),
    leaves: optional(v.literal(true, "true, or left out")),
    figures: optional(clientFigures),
  }),
  workerHeartbeat: object({
    name: workerName,
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
    number: requestNumber,
    source: count,
    repetition: count,
    spare: optional(flag),
    count: optional(upTo(SPLITS_AT_ONCE_MAX)),
  }),
  getSaveWork: object({
    taskId: count,
    done: optional(object({
      work: oneOf("run", "entry"),
      place: count,
      attempt: optional(name),
      elements: count,
      sizeBytes: count,
      restBytes: optional(count),
    })),
    failed: optional(wireError),
    isLast: optional(flag),
  }),
  runnerDied: object({
    taskId: count,
    number: requestNumber,
    place: optional(count),
    error: wireError,
  }),
  describe: v.nullable(object({ refresh: optional(flag) })),
});

const schedule = {
  version: count,
  fromRound: count,
  kept: optional(list(count, TASKS_MAX)),
  taskIds: optional(list(count, TASKS_MAX)),
  added: optional(list(count, TASKS_MAX)),
  removed: optional(list(count, TASKS_MAX)),
};

const news = oneKindOf(
  object({
    kind: v.literal("rounds"),
    schedules: list(object(schedule)),
    proposed: optional(object(schedule)),
    endRound: optional(count),
    absent: list(object({ consumerIndex: count, beforeRound: v.nullable(count) })),
  }),
  object({
    kind: v.literal("ordered"),
    windowSplits: count,
    table: optional(object({ total: count, digest: name })),
    left: list(count),
  }),
  object({
    kind: v.literal("save"),
    progress: object({ splitsDone: count, splitsTotal: count, elements: count, sizeBytes: count }),
  }),
);

const clientNews = {
  tasks: list(object({ taskId: count, worker: name, source: fencedRef }), TASKS_MAX),
  taskList: optional(name),
  finished: flag,
  error: optional(wireError),
  starvation: optional(reason),
  news: optional(news),
  timeoutMs: optional(duration),
};

const datasetDefinition = object({ datasetId: name, ...datasetFields });

const taskDefinition = object({
  clusterId: name,
  taskId: count,
  iterationId: count,
  jobId: count,
  owner: name,
  dataset: datasetDefinition,
  parameters,
  repetition: count,
  seed: name,
  shard: optional(object({ index: count, count })),
});

const splitFields = { start: count, stop: count, index: count };

/** The answers that clients and workers use. */
export const dispatcherAnswers = answerChecksOf<DispatcherProtocol>()({
  registerDataset: object({ datasetId: name }),
  getDataset: datasetDefinition,
  openIteration: object({
    ...{ jobId: count, iterationId: count, clientId: count, clusterId: name },
    isContinued: optional(flag),
  }),
  clientHeartbeat: oneKindOf(
    object({ kind: v.literal("whole"), ...clientNews }),
    object({ kind: v.literal("changes"), ...clientNews, endedTasks: list(count, TASKS_MAX) }),
  ),
  workerHeartbeat: oneKindOf(
    object({
      kind: v.literal("work"),
      newTasks: list(taskDefinition, TASKS_MAX),
      hasMoreTasks: optional(v.literal(true, "true, or left out")),
      endedTasks: list(count, TASKS_MAX),
      timeoutMs: optional(duration),
      lacksFigures: optional(v.literal(true, "true, or left out")),
    }),
    object({ kind: v.literal("takeover"), incarnation: name }),
  ),
  getSplit: object({
    split: v.nullable(object({ ...splitFields, sequence: optional(count) })),
    more: optional(list(object(splitFields), SPLITS_AT_ONCE_MAX)),
    total: count,
  }),
  runnerDied: object({ mayStart: flag }),
});
