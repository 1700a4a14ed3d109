/**
 * Starts the service's actors on simulated nodes: the same dispatcher, worker and client as in
 * production.
 */
import { type ClientOptions, createClient } from "../../actors/client/client.ts";
import { Feed } from "../../actors/client/feed.ts";
import type { ClientProtocol } from "../../actors/client/protocol.ts";
import type { Actor } from "../../actors/runtime/actor.ts";
import type { DispatcherConfig, KnownWorkers } from "../../actors/dispatcher/config.ts";
import { createDispatcher } from "../../actors/dispatcher/dispatcher.ts";
import { dispatcherAt, type DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { JournalRecord } from "../../actors/dispatcher/journal/records.ts";
import { loadSaving, PipelineRunners } from "../../actors/worker/runner/pipeline_runner.ts";
import type { WorkerProtocol } from "../../actors/worker/protocol.ts";
import type { RunnerFactory } from "../../actors/worker/runner/runner.ts";
import { createWorker } from "../../actors/worker/worker.ts";
import type { WorkerOptions } from "../../actors/worker/worker_options.ts";
import { decodeMessage, encodeMessage, MessageSlab } from "../../transport/codec.ts";
import { PROXY_KINDS } from "../../platform/nodes/service_kinds.ts";
import { JournalChecker, type RecordWatcher } from "../checkers/journal.ts";
import type { SimHost } from "../host.ts";
import { copyMessage } from "./message_copy.ts";
import type { Boot, SimNode } from "./node.ts";

/** The node of the dispatcher in a simulated cluster. */
export const DISPATCHER_NODE = "dispatcher";

/** Longer than any fault, and short enough that finished jobs are garbage-collected within a run. */
const FORGETTING = { clientTimeoutMs: 30_000, clientGraceMs: 30_000, jobGcTimeoutMs: 30_000 };
const WORKER_TIMEOUT_MS = 60_000;
/** By default, the grace of workers in parts of their timeout. */
const GRACE_SHARE = 1 / 6;
const GRACE_SHORT_MS = 300;

// Loaded in advance, because virtual time does not wait for modules.
await loadSaving();

/** Wraps the dispatcher's handlers. */
export type WrapDispatcher = (actor: Actor<DispatcherProtocol>) => Actor<DispatcherProtocol>;

const journals = new WeakMap<SimNode, JournalChecker>();

/** Returns the checker of the dispatcher's journal on that node, if a dispatcher has run there. */
export function journalOf(node: SimNode): JournalChecker | undefined {
  return journals.get(node);
}

/**
 * Boots a node with a dispatcher, whose journal is checked as it grows.
 * @param watcher Receives the journal's records, in all lives of the node.
 */
export function bootDispatcher(config: DispatcherConfig = {}, watcher?: RecordWatcher): Boot {
  return (node) => {
    const checker = journals.getOrInsertComputed(
      node,
      () => new JournalChecker(recordsAsRead(), watcher),
    );
    const wrapJournal: DispatcherConfig["wrapJournal"] = (journal, state) => {
      const watched = checker.begin(journal, state);
      return config.wrapJournal?.(watched, state) ?? watched;
    };
    spawnDispatcher(node, {
      ...FORGETTING,
      workerGraceMs: drawWorkerGrace(node, config),
      ...config,
      wrapJournal,
    });
  };
}

/**
 * Draws how long a worker whose connection closed may stay away: a share of its timeout, as in
 * production, or the timeout itself, so that only silence counts. Where the timeout is so short that
 * living workers are lost, the time may be short, too.
 */
function drawWorkerGrace(
  { random }: SimNode,
  { workerTimeoutMs = WORKER_TIMEOUT_MS }: DispatcherConfig,
): number {
  const share = GRACE_SHARE * workerTimeoutMs;
  const mayLoseLiving = workerTimeoutMs < WORKER_TIMEOUT_MS;
  return random.fork("worker grace").pick(
    mayLoseLiving ? [GRACE_SHORT_MS, share, workerTimeoutMs] : [share, workerTimeoutMs],
  );
}

/** Boots a dispatcher without the check, which keeps the whole journal in memory. */
export function bootUncheckedDispatcher(config?: DispatcherConfig, wrap?: WrapDispatcher): Boot {
  return (node) => spawnDispatcher(node, config, wrap);
}

/** Returns records as they are read back from disk, mostly without encoding them. */
function recordsAsRead(): (record: JournalRecord) => JournalRecord {
  const slab = new MessageSlab();
  return (record) => {
    const copy = copyMessage(record, slab);
    return (copy?.value ?? decodeMessage(encodeMessage(record, { slab }))) as JournalRecord;
  };
}

function spawnDispatcher(
  node: SimNode,
  config: DispatcherConfig = {},
  wrap: WrapDispatcher = (actor) => actor,
): void {
  const onWorkers = ({ isAddress }: KnownWorkers) => node.mayDial = isAddress;
  node.system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: (context) => wrap(createDispatcher(context, { ...config, onWorkers })),
  });
}

export type WorkerSettings =
  & Pick<
    WorkerOptions,
    | "heartbeatMs"
    | "windowBytesMax"
    | "skipAfterMs"
    | "placement"
    | "tags"
    | "process"
    | "isPrivate"
    | "aheadBytesMax"
  >
  & {
    /** The worker's name. Default: its node's. */
    readonly name?: string;
  };

/** Boots a node with a worker, which runs pipelines in the node's only thread. */
export function bootWorker(
  config: WorkerSettings = {},
  runnersOf: (host: SimHost) => RunnerFactory = (host) => new PipelineRunners(host),
): Boot {
  return (node) => {
    const { name, system, host } = node;
    const mayDial = new Set([DISPATCHER_NODE, ...Object.values(config.placement ?? {})]);
    node.mayDial = (other) => mayDial.has(other);
    system.spawn<WorkerProtocol>({
      name: "worker",
      create: (context) =>
        createWorker(context, {
          name,
          ...config,
          dispatcher: dispatcherAt(DISPATCHER_NODE),
          runners: runnersOf(host),
          proxies: PROXY_KINDS,
        }),
    });
  };
}

/** Starts a client actor on a node. Returns the feed with its elements. */
export function startClient(
  { system }: SimNode,
  options: Omit<ClientOptions, "dispatcher">,
): Feed {
  const feed = new Feed();
  system.spawn<ClientProtocol>({
    name: "client",
    restart: "temporary",
    create: (context) =>
      createClient(context, { ...options, dispatcher: dispatcherAt(DISPATCHER_NODE) }, feed),
  });
  return feed;
}
