/**
 * `distribute`: the point where a pipeline leaves its process. Operators before it run in workers
 * of a service; its iterator is provided from outside the data engine.
 */
import { CERTIFICATE_BEGINNING, hasCertificate } from "../../core/certificates.ts";
import { LeatError } from "../../core/error.ts";
import { shownAddress } from "../../core/shown_text.ts";
import { isPlainObject } from "../../core/tree.ts";
import { NodeFunction } from "../udf/call.ts";
import { checkInteger, invalidArgument, optionsOf, show } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import {
  ELEMENT_COMPRESSIONS,
  type ElementCompression,
  TARGET_WORKERS,
  type TargetWorkers,
} from "../service/reading_choices.ts";
import type { ElementIterator } from "../iterator.ts";
import {
  type Attributes,
  type DatasetNode,
  type HasNode,
  inPreOrder,
  nodeOf,
  registerNode,
  servedIterator,
  UNKNOWN_CARDINALITY,
} from "../node.ts";
import { drawsSplitOrder } from "../deterministic/chain.ts";
import { SharedGraphs } from "../checkpoint/shared_state.ts";
import { checkReproducible } from "../deterministic/reproducible.ts";
import { CustomShardingPolicy } from "../sharding/custom_policy.ts";
import { sameOnAll, shardGraph } from "../sharding/shard_graph.ts";
import { MODE_FACTS, type ShardingMode, ShardingPolicy } from "../sharding/sharding_policy.ts";
import {
  checkReadsNoService,
  dividedInputs,
  isSplittable,
  operatorsOnParts,
} from "../sharding/splits.ts";
import { FileSourceNode } from "../sources/file_source.ts";
import { isFileListing } from "../sources/files.ts";
import { checkOperators } from "../wire.ts";
import { ElementsOfInputNode } from "./unary.ts";

/** How a dataset is distributed. */
export interface DistributeOptions {
  /**
   * The dispatcher: `ws://host:port`, `wss://…`, or an object with such an address. The result may
   * be distributed again, with OFF: the workers of a second service then read from this one. With
   * DYNAMIC and a `jobName` in this call, those workers together get every element once.
   */
  readonly service: string | { readonly address: string };
  /**
   * How the workers share the work: a policy by name, or one made by `shardingPolicy()`; default OFF.
   * Under DYNAMIC and FILE each worker runs `take`, `unique` and other operators that need the whole
   * dataset on its own part; a warning names them.
   */
  readonly processingMode?: ShardingPolicy | CustomShardingPolicy;
  /** Clients with the same job name share its elements. */
  readonly jobName?: string;
  /** The index of this consumer in the job, from 0; needs `numConsumers` and `jobName`. */
  readonly consumerIndex?: number;
  /**
   * How many consumers read the job; needs `consumerIndex` and `jobName`. Under DETERMINISTIC
   * consumer i gets the elements whose number in the stream, modulo `numConsumers`, is i. Each
   * element is produced once and sent to its consumer only, or to all consumers if the reader runs
   * operators. A consumer that is ahead waits for the others. In other modes consumers read in
   * rounds: each gets one of `numConsumers` successive elements of one worker. To take all elements
   * of a round from one bucket, put `groupByWindow({ windowSize: numConsumers, … })` after the
   * bucketing. Under DATA the listed workers take the elements in turn, so there `windowSize` must be
   * `numConsumers` times the number of listed workers.
   */
  readonly numConsumers?: number;
  /**
   * DETERMINISTIC: identifies one start of the training program. The launcher gives all consumers
   * started together the same id, and another one at each restart. Needs `jobName`. The first
   * reader of a new run replaces the readers of earlier runs, and two runs never read one epoch. So
   * consumers can be restarted while readers of an earlier start, even a failed one, are still
   * alive. Restore all consumers of a run from the same step, each once, or restore none. Default:
   * unset, so that the first restored consumer restarts the stream for all.
   */
  readonly runId?: string;
  /**
   * Shares the workers' elements with the other trainers of the job (tf.data service paper, section
   * 3.5): each worker keeps a window of its newest elements, and each trainer reads the window at its
   * own pace. The fastest trainer makes the worker produce new elements. A trainer too slow for the
   * window misses the oldest elements (`stats()[…].skipped`). A trainer that joins starts with the
   * oldest element of the window. Needs `jobName` and an endless dataset; not with DETERMINISTIC or
   * `numConsumers`.
   *
   * `trainerId` names a position in the windows: a trainer that returns under the same id continues
   * there (if it makes a new dataset for each iterator). Two trainers that read under one id at the
   * same time divide the elements.
   */
  readonly sharing?: { readonly trainerId: string };
  /**
   * Requests in flight plus buffered elements, from the first element on. Default: at least 16, and
   * more if workers then answer faster, within 256 MiB. In a coordinated job it is the number of
   * rounds ahead of the training loop: at most 32, by default 4, within 256 MiB. A consumer can be
   * that far ahead of another. Under DETERMINISTIC it counts only elements that wait, in order, for
   * the training loop; default 16.
   */
  readonly maxOutstandingRequests?: number;
  /**
   * While more bytes than this wait for the training loop, the client requests only the element that
   * the loop needs next. Default 256 MiB; for `offload()` 64 MiB.
   */
  readonly bufferBytesMax?: number;
  /**
   * How elements are compressed on the wire: `"zstd"`, `"gzip"`, `"none"`, or `"auto"` (the
   * default), which compresses where measurements say that it pays: over slow networks, for data
   * that shrinks. The registered dataset stores it, so all clients of one job must choose the same.
   */
  readonly compression?: ElementCompression;
  /**
   * Which workers are read. `"local"`: only those of this process, by direct call (no socket, no
   * copy). `"any"`: all. `"auto"` (the default): all, except workers of other processes with the tag
   * `COLOCATED`. Private workers of other processes (`serveWorker({ local: true })`) are never read.
   * Jobs with `numConsumers` use no private workers, refuse `"local"`, and do use `COLOCATED`
   * workers. All clients of a job must choose the same.
   */
  readonly targetWorkers?: TargetWorkers;
  /** Only workers that carry all of these tags are read. Default: all workers. */
  readonly targetTags?: readonly string[];
  /**
   * The token that authenticates this client to the service. It stays in this process: a worker
   * whose pipeline reads from a service uses the token of its own `serveWorker({ services })`.
   */
  readonly token?: string;
  /** PEM certificates of authorities trusted in addition to the usual ones, for `wss://…`. */
  readonly ca?: string;
}

/** The names of the options that `distribute` and `fromId` share. */
export const DISTRIBUTION = {
  processingMode: true,
  jobName: true,
  consumerIndex: true,
  numConsumers: true,
  sharing: true,
  maxOutstandingRequests: true,
  bufferBytesMax: true,
  targetWorkers: true,
  runId: true,
  targetTags: true,
  token: true,
  ca: true,
} as const;

/** The graph that `rewrite` makes of a dataset; without `rewrite`, the dataset's own. */
export function rewritten<D extends HasNode>(
  operator: string,
  dataset: D,
  rewrite?: (dataset: D) => unknown,
): DatasetNode {
  if (rewrite === undefined) return dataset.node;
  if (typeof rewrite !== "function") {
    throw invalidArgument(operator, "rewrite", "a function of a Dataset", rewrite);
  }
  const changed = rewrite(dataset);
  const node = nodeOf(changed);
  if (node !== undefined) return node;
  throw new LeatError(
    "invalid_argument",
    `${operator}: rewrite must return a Dataset, got ${show(changed)}`,
  );
}

export class DistributeNode extends ElementsOfInputNode {
  static readonly options = optionsOf<DistributeOptions & { readonly rewrite?: unknown }>(
    "distribute",
    { service: true, rewrite: true, compression: true, ...DISTRIBUTION },
  );
  override readonly division = "served";
  readonly options: DistributeOptions;
  readonly #readerGraphs = new SharedGraphs();

  constructor(input: DatasetNode, options: DistributeOptions) {
    super("distribute", input);
    this.options = checkDistributeOptions("distribute", options);
    checkOperators(input);
    if (inPreOrder(input).some(({ kind }) => kind === "offload")) throw offloadedBelow();
    const { processingMode } = this.options;
    if (processingMode === ShardingPolicy.DETERMINISTIC) checkReproducible(input);
    checkServicesBelow(input, shardingModeOf(processingMode));
  }

  override get attributes(): Attributes {
    return attributesOf(this.options);
  }

  /** A restored pipeline may have another service's address and other options of the reader. */
  override get checkpointAttributes(): Attributes {
    const { processingMode = ShardingPolicy.OFF, numConsumers, consumerIndex } = attributesOf(
      this.options,
    );
    return { processingMode, numConsumers, consumerIndex };
  }

  override get drawsNumbers(): boolean {
    return this.options.processingMode === ShardingPolicy.DETERMINISTIC &&
      drawsSplitOrder(this.input);
  }

  override get cardinality(): number {
    const once = this.input.cardinality;
    const { processingMode, numConsumers } = this.options;
    const mode = shardingModeOf(processingMode);
    if (numConsumers !== undefined && mode === ShardingPolicy.DETERMINISTIC) {
      return UNKNOWN_CARDINALITY;
    }
    if (numConsumers !== undefined) return Infinity;
    const { keepsEndless, keepsEmpty } = MODE_FACTS[mode];
    const isKept = once === Infinity && keepsEndless || once === 0 && keepsEmpty;
    return isKept ? once : UNKNOWN_CARDINALITY;
  }

  /** Used under DETERMINISTIC: the graphs that run at the reader. */
  override get shared(): SharedGraphs {
    return this.#readerGraphs;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return servedIterator(this, context);
  }
}

registerNode("distribute", {
  fromWire: (a, [input]) => new DistributeNode(input!, a as unknown as DistributeOptions),
});

/** Refuses a graph that reads from another service, if workers would divide what that gives. */
function checkServicesBelow(input: DatasetNode, mode: ShardingMode): void {
  if (MODE_FACTS[mode].isSplit) return checkReadsNoService(input);
  if (mode === ShardingPolicy.OFF) return;
  if (!inPreOrder(input).some(({ division }) => division === "served")) return;
  if (mode === "CUSTOM") sameOnAll(input);
  else shardGraph(input, mode, { index: 0, count: 1 });
}

/**
 * A warning about operators that need the whole dataset, if each worker runs them on its part.
 * `undefined` if there are none.
 */
export function partsWarning({ inputs: [input], options }: DistributeNode): string | undefined {
  const mode = shardingModeOf(options.processingMode);
  const { asksForSplits } = MODE_FACTS[mode];
  const dividesFiles = mode === ShardingPolicy.FILE ||
    mode === ShardingPolicy.FILE_OR_DATA && readsFiles(input!);
  if (!asksForSplits && !dividesFiles) return undefined;
  const found = operatorsOnParts(input!, asksForSplits ? isSplittable : readsItsFiles);
  const kinds = [...new Set(found.map(({ kind }) => kind))];
  if (kinds.length === 0) return undefined;
  const operators = kinds.join(", ");
  const pairs = mode !== ShardingPolicy.DYNAMIC && kinds.includes("zip")
    ? ". Pairs of zip are right only if the files with the same number in its inputs have equally " +
      "many elements"
    : "";
  return `distribute: under ${mode} each worker runs ${operators} on its own part of the data, so the ` +
    `result depends on how many workers there are and what each of them reads${pairs}. Use ` +
    `processingMode "${ShardingPolicy.DETERMINISTIC}", or, if the order of elements does not ` +
    `matter, call ${operators} after distribute()`;
}

/** Whether FILE can divide all sources: they read files. */
function readsFiles(node: DatasetNode): boolean {
  return readsItsFiles(node) ||
    node.division !== "stored" && node.inputs.length > 0 && dividedInputs(node).every(readsFiles);
}

/** Whether the node is a source of which FILE divides the files, after all operators on their names. */
function readsItsFiles(node: DatasetNode): boolean {
  return isFileListing(node) || node instanceof FileSourceNode;
}

export function shardingModeOf(policy: DistributeOptions["processingMode"]): ShardingMode {
  return policy instanceof CustomShardingPolicy ? "CUSTOM" : policy ?? ShardingPolicy.OFF;
}

/** Options as attributes, without token and certificates, which belong to the process. */
export function attributesOf(options: DistributeOptions): Attributes {
  const { token: _token, ca: _ca, service, processingMode, ...rest } = options;
  const { name, shard } = processingMode instanceof CustomShardingPolicy ? processingMode : {};
  return {
    ...rest,
    service: typeof service === "string" ? service : service.address,
    processingMode: shard === undefined ? processingMode : { name, shard },
  };
}

/** Options as given by a user, or as recorded in attributes. */
export function checkDistributeOptions<O extends DistributeOptions>(
  operator: string,
  options: O,
): O {
  const { service, jobName, consumerIndex, numConsumers } = options;
  const { maxOutstandingRequests, bufferBytesMax } = options;
  checkService(operator, service);
  if (jobName !== undefined && (typeof jobName !== "string" || jobName === "")) {
    throw invalidArgument(operator, "jobName", "a non-empty string", jobName);
  }
  checkConsumers(operator, jobName, consumerIndex, numConsumers);
  checkRun(operator, options);
  checkSharing(operator, options);
  if (maxOutstandingRequests !== undefined) {
    checkInteger(operator, "maxOutstandingRequests", maxOutstandingRequests, 1);
  }
  if (bufferBytesMax !== undefined) checkInteger(operator, "bufferBytesMax", bufferBytesMax, 1);
  checkCompression(operator, options.compression);
  checkTargets(operator, options);
  checkCredentials(operator, options);
  if (options.processingMode === undefined) return options;
  return { ...options, processingMode: checkPolicy(operator, options.processingMode) };
}

/**
 * Checks an address: the name of a cluster of this process, without colon and slash, or a URL.
 *
 * @throws {LeatError} `invalid_argument` for anything else.
 */
export function checkService(operator: string, service: unknown): void {
  const address: unknown = hasAddress(service) ? service.address : service;
  if (typeof address === "string" && /^([^:/]+|wss?:\/\/[^/@?#]+\/?)$/.test(address)) return;
  const isBare = typeof address === "string" && /^[^:/@]+:\d+$/.test(address);
  throw invalidArgument(
    operator,
    "service",
    "ws://host:port, wss://host:port (with TLS), or a " +
      `LocalCluster${isBare ? ` (here ws://${address})` : ""}`,
    typeof address === "string" ? shownAddress(address) : address ?? service,
  );
}

/** Checked here, because an invalid token would be sent to the service again and again. */
function checkCredentials(
  operator: string,
  { token, ca }: Pick<DistributeOptions, "token" | "ca">,
) {
  if (token !== undefined && typeof token !== "string") {
    throw invalidArgument(operator, "token", "the service's secret, a string", typeof token);
  }
  if (ca !== undefined && !hasCertificate(ca)) {
    const given = typeof ca === "string" ? ca.slice(0, CERTIFICATE_BEGINNING.length) : ca;
    throw invalidArgument(operator, "ca", `certificates in PEM (${CERTIFICATE_BEGINNING}…)`, given);
  }
}

function hasAddress(service: unknown): service is { readonly address: unknown } {
  return typeof service === "object" && service !== null && "address" in service;
}

function checkPolicy(operator: string, policy: unknown): ShardingPolicy | CustomShardingPolicy {
  if (policy instanceof CustomShardingPolicy) return policy;
  if (isPlainObject(policy) && policy.shard instanceof NodeFunction) {
    return new CustomShardingPolicy(policy.name, policy.shard);
  }
  const known = Object.values(ShardingPolicy).find((name) => name === policy);
  if (known !== undefined) return known;
  const names = Object.values(ShardingPolicy).join(", ");
  throw invalidArgument(
    operator,
    "processingMode",
    `one of ${names}, or shardingPolicy(…)`,
    policy,
  );
}

/** @throws {LeatError} `invalid_argument` for a value that is no {@linkcode ElementCompression}. */
export function checkCompression(operator: string, compression: unknown): void {
  if (compression === undefined || ELEMENT_COMPRESSIONS.some((known) => known === compression)) {
    return;
  }
  const names = ELEMENT_COMPRESSIONS.join(", ");
  throw invalidArgument(operator, "compression", `one of ${names}`, compression);
}

function checkRun(operator: string, { runId, jobName, processingMode }: DistributeOptions): void {
  if (runId === undefined) return;
  if (typeof runId !== "string" || runId === "") {
    throw invalidArgument(operator, "runId", "a non-empty string", runId);
  }
  if (jobName !== undefined && processingMode === ShardingPolicy.DETERMINISTIC) return;
  throw new LeatError(
    "invalid_argument",
    `${operator}: runId needs jobName and processingMode "${ShardingPolicy.DETERMINISTIC}": it ` +
      "identifies the readers of one job that start together",
  );
}

function checkTargets(operator: string, options: DistributeOptions): void {
  const { targetWorkers = "auto", targetTags = [], numConsumers } = options;
  if (!TARGET_WORKERS.includes(targetWorkers)) {
    throw invalidArgument(
      operator,
      "targetWorkers",
      `one of ${TARGET_WORKERS.join(", ")}`,
      targetWorkers,
    );
  }
  if (targetWorkers === "local" && numConsumers !== undefined) {
    throw new LeatError(
      "invalid_argument",
      `${operator}: numConsumers needs workers that all consumers reach, but targetWorkers is ` +
        '"local"; leave one of the two out',
    );
  }
  const isTag = (tag: unknown) => typeof tag === "string" && tag !== "";
  if (!Array.isArray(targetTags) || !targetTags.every(isTag)) {
    throw invalidArgument(operator, "targetTags", "an array of non-empty strings", targetTags);
  }
}

function checkSharing(
  operator: string,
  { sharing, jobName, numConsumers, processingMode }: DistributeOptions,
): void {
  if (sharing === undefined) return;
  if (typeof sharing?.trainerId !== "string" || sharing.trainerId === "") {
    throw invalidArgument(operator, "sharing.trainerId", "a non-empty string", sharing?.trainerId);
  }
  if (jobName === undefined) {
    throw new LeatError(
      "invalid_argument",
      `${operator}: jobName must be set with sharing, so that the trainers meet in one job`,
    );
  }
  if (processingMode === ShardingPolicy.DETERMINISTIC) {
    throw new LeatError(
      "invalid_argument",
      `${operator}: sharing does not work with "${processingMode}", which gives an element once; ` +
        "use another processingMode",
    );
  }
  if (numConsumers === undefined) return;
  throw new LeatError(
    "invalid_argument",
    `${operator}: a job can share its data between trainers or coordinate reads, but not both; ` +
      "leave sharing or numConsumers out",
  );
}

function offloadedBelow(): LeatError {
  return new LeatError(
    "invalid_argument",
    "distribute: this pipeline has an offload(), which divides it between the trainer and workers; " +
      "leave one of the two out",
  );
}

function checkConsumers(
  operator: string,
  jobName: unknown,
  index: unknown,
  count: unknown,
): void {
  if (index === undefined && count === undefined) return;
  if (index === undefined || count === undefined) {
    throw new LeatError(
      "invalid_argument",
      `${operator}: set both consumerIndex and numConsumers for coordinated reads, or neither`,
    );
  }
  if (jobName === undefined) {
    throw new LeatError(
      "invalid_argument",
      `${operator}: jobName must be set with numConsumers, so that the consumers meet in one job`,
    );
  }
  const consumers = checkInteger(operator, "numConsumers", count, 1);
  checkInteger(operator, "consumerIndex", index, 0, consumers - 1);
}
