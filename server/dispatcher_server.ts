/** The dispatcher of a cluster, as a server. */
import { checkScaling } from "../actors/dispatcher/scaling/autoscaler.ts";
import type { DispatcherOptions, KnownWorkers } from "../actors/dispatcher/config.ts";
import { dispatcherAt } from "../actors/dispatcher/protocol.ts";
import type { DispatcherDescription } from "../actors/dispatcher/protocol_figures.ts";
import { checkWorkerNames } from "../actors/dispatcher/modes/listed_workers.ts";
import type { LeatError } from "../core/error.ts";
import { checkJournal } from "./journal_check.ts";
import { type DispatcherRole, supervisionOf } from "./roles.ts";
import { isNodeAddress } from "../platform/nodes/service_address.ts";
import type { ServiceNode, ServiceNodeConfig } from "../platform/nodes/service_node.ts";
import { checkDispatcherConfig } from "./service_options.ts";
import { definedFields } from "../core/tree.ts";

/** Time limit for reading the journal at the start, in ms. */
const START_TIMEOUT_MS = 120_000;
const DESCRIBE_TIMEOUT_MS = 10_000;
const HEALTH_TIMEOUT_MS = 2_000;
/** Limit of restarts of the dispatcher's actor per minute, for example after failures of its journal. */
const RESTARTS_MAX = 3;

/** Options of a dispatcher server. */
export interface DispatcherServerConfig extends ServiceNodeConfig, DispatcherOptions {
  /** The folder of the journal. Default: the journal is in memory, and lost at a restart. */
  readonly journal?: string;
}

/** A dispatcher that listens. */
export interface DispatcherServer extends AsyncDisposable {
  /** `ws://host:port` or `wss://host:port`: for workers, and for `distribute({ service })`. */
  readonly address: string;
  /**
   * The URL of a page that shows the dispatcher's state: `http://host:port/`, or `https:`. Programs
   * read `state`, `metrics` and `healthz` below it. If the dispatcher has a token, browsers open
   * `/?token=…`, and programs send the header `authorization: Bearer …`.
   */
  readonly page: string;
  /** Resolves when the server cannot continue, for example because its journal fails. Close it then. */
  readonly failed: Promise<LeatError>;
  /** The dispatcher's whole state. */
  describe(): Promise<DispatcherDescription>;
  /**
   * Stops the dispatcher, usually within two seconds, later under full load. Its journal holds every
   * acknowledged change. Idempotent.
   */
  close(): Promise<void>;
}

/**
 * Serves a dispatcher; resolves when it has read its journal and answers.
 * @throws LeatError `already_exists` when the port is in use; `failed_precondition` when it would
 * listen beyond this machine without a token, or another dispatcher holds the journal;
 * `permission_denied`, `data_loss` and others when the journal cannot be read; `invalid_argument`
 * for invalid settings.
 *
 * @example
 * ```ts ignore
 * import { serveDispatcher } from "./mod.ts";
 *
 * await using dispatcher = await serveDispatcher({
 *   hostname: "0.0.0.0",
 *   port: 5050,
 *   token,
 *   journal: "/var/lib/leat",
 * });
 * console.log(dispatcher.address);
 * throw await dispatcher.failed;
 * ```
 */
export async function serveDispatcher(
  config: DispatcherServerConfig = {},
): Promise<DispatcherServer> {
  checkDispatcherConfig(config);
  const { journal, workers, workerTimeoutMs, workerGraceMs } = config;
  const { clientTimeoutMs, clientGraceMs } = config;
  const { jobGcTimeoutMs, windowSplits, runnerDeathsMax, scaling, quotas } = config;
  checkScaling(scaling);
  if (workers !== undefined) checkWorkerNames(workers);
  if (journal !== undefined) await checkJournal(journal);
  // Loaded lazily: most programs never serve.
  const [{ startDispatcher }, { dispatcherPages }, nodes] = await Promise.all([
    import("./dispatcher_role.ts"),
    import("./pages/dispatcher_pages.ts"),
    import("../platform/nodes/service_node.ts"),
  ]);
  const role: DispatcherRole = {
    role: "dispatcher",
    supervision: { intensity: RESTARTS_MAX },
    ...definedFields({ journalFolder: journal }),
    config: definedFields({
      ...{ workers, workerTimeoutMs, workerGraceMs },
      ...{ clientTimeoutMs, clientGraceMs, jobGcTimeoutMs },
      ...{ windowSplits, runnerDeathsMax, scaling, quotas },
    }),
  };
  let registeredWorkers: KnownWorkers | undefined;
  const node: ServiceNode = new nodes.ServiceNode(config, {
    mayDial: (node) => registeredWorkers?.isAddress(node) === true,
    ownerOf: (node) => registeredWorkers?.ownerOf(node),
    pages: dispatcherPages({
      describe: () =>
        system.ask(dispatcher, "describe", { refresh: true }, { timeoutMs: DESCRIBE_TIMEOUT_MS }),
      hello: () => system.ask(dispatcher, "hello", null, { timeoutMs: HEALTH_TIMEOUT_MS }),
    }),
    ...definedFields({ logFolder: journal }),
    supervision: supervisionOf(role),
    dialling: "workers",
  });
  const { system } = node;
  startDispatcher(system, role, {
    dialWorker: (worker) => node.dial(worker),
    isNodeAddress,
    onWorkers: (view) => registeredWorkers = view,
  });
  const dispatcher = dispatcherAt(system.id.node);
  try {
    await Promise.race([
      system.ask(dispatcher, "hello", null, { timeoutMs: START_TIMEOUT_MS, attemptMs: 1_000 }),
      system.failed.then((error) => Promise.reject(error)),
    ]);
  } catch (error) {
    await node.stop();
    throw error;
  }
  let closed: Promise<void> | undefined;
  const close = () => closed ??= node.stop();
  return {
    address: node.address,
    page: `${node.address.replace(/^ws/, "http")}/`,
    failed: system.failed,
    describe: () => system.ask(dispatcher, "describe", null, { timeoutMs: DESCRIBE_TIMEOUT_MS }),
    close,
    [Symbol.asyncDispose]: close,
  };
}
