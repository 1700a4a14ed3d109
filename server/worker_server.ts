/** A worker of a cluster, as a server. */
import type { WorkerLimits } from "../actors/worker/worker_options.ts";
import type { LeatError } from "../core/error.ts";
import type { SandboxOptions } from "../platform/sandbox/grants.ts";
import { requireSecretsOutside } from "./secrets_outside.ts";
import { checkWorkerConfig } from "./service_options.ts";
import type { ServiceNodeConfig } from "../platform/nodes/service_node.ts";
import type { WorkerStorage } from "../platform/storage/storage.ts";

/** Options of a worker server. */
export interface WorkerServerConfig
  extends Omit<ServiceNodeConfig, "hostname">, WorkerLimits, WorkerStorage {
  /** The dispatcher: `ws://host:port` or `wss://host:port`. */
  readonly dispatcher: string;
  /**
   * The interface to listen on. Default: `127.0.0.1` when the dispatcher is on this machine's
   * loopback, all interfaces (`0.0.0.0`) otherwise.
   */
  readonly hostname?: string;
  /**
   * Whether trainers of this worker's host and user get batches from 64 KiB to 32 MiB through a file
   * that both processes have open, instead of the TCP connection. It needs `--allow-read` and
   * `--allow-write` of the folder for temporary files, on both sides; without them, in another
   * container or on Windows, the connection carries all batches. Default true.
   */
  readonly sharesSlots?: boolean;
  /** A name that is unique among workers, and the same after a restart. Default: the advertised address. */
  readonly name?: string;
  /**
   * Tags by which jobs choose workers (`distribute({ targetTags })`), also shown in logs and pages.
   * `COLOCATED` reserves this worker for the clients of its own process, and for clients with
   * `targetWorkers: "any"` or `numConsumers`.
   */
  readonly tags?: readonly string[];
  /**
   * Serves only the clients of this process, by direct call: the worker does not listen, and needs no
   * address, port or token of its own. Workers elsewhere produce the rest of a job that it runs.
   * Default false.
   */
  readonly local?: boolean;
  /**
   * Limit of the sliding windows of its shared tasks together, in bytes. Each of n tasks gets an n-th
   * part; when a task ends, the parts of the others grow. Default: 10 GiB, or a quarter of this host's
   * memory if that is less (1 GiB without permission to read its size).
   */
  readonly windowBytesMax?: number;
  /**
   * Whether this process only serves the worker. The costs of jobs then include the process's
   * resource usage. Default false.
   */
  readonly ownProcess?: boolean;
  /**
   * Confines the functions of submitted pipelines to the grants here; `true` is the default of
   * {@linkcode SandboxOptions}. Each pipeline then runs in a process of its own, so this program
   * needs `--allow-run=deno`, and `--allow-read` and `--allow-write` of the temporary folder.
   * Default false: functions may do whatever the program may.
   */
  readonly sandbox?: boolean | SandboxOptions;
  /**
   * Without a sandbox: once this many threads ignore the request to end, `failed` resolves, and the
   * program can be restarted. Deno cannot end a thread whose function never yields. With this option,
   * one thread that neither loads nor ends is enough. Default: never.
   */
  readonly runawayThreadsMax?: number;
  /** How long a thread may ignore the request to end, in ms. Default two minutes. */
  readonly runawayAfterMs?: number;
}

/** Options of closing a worker's server. */
export interface WorkerCloseOptions {
  /**
   * Time for the worker to finish its splits, and for clients to fetch what it has produced, in ms.
   * What remains then is lost, as in a crash. Default 0: the worker stops at once.
   */
  readonly drainTimeoutMs?: number;
}

/** A worker that serves clients. */
export interface WorkerServer extends AsyncDisposable {
  /** The address that it advertises; with `local: true`, a name that cannot be dialled. */
  readonly address: string;
  /** Its name at the dispatcher. */
  readonly name: string;
  /**
   * Resolves if the worker cannot continue: the dispatcher refuses it (a wrong token, or another
   * worker has taken its name over), its actor died too often, or too many of its threads cannot be
   * ended (`runawayThreadsMax`). Close it then.
   */
  readonly failed: Promise<LeatError>;
  /**
   * Takes no more work, lets clients fetch the rest within the drain timeout, and deregisters at the
   * dispatcher. Stops within two seconds after draining. Idempotent.
   */
  close(options?: WorkerCloseOptions): Promise<void>;
}

/**
 * Serves a worker, which registers as soon as its dispatcher answers. It waits for the dispatcher
 * without a limit, and logs this every few seconds.
 *
 * Both the worker and the dispatcher dial the address that the worker advertises, and log at once if
 * the worker does not answer there.
 *
 * Iterators of the same thread read from the worker by direct call, without a socket
 * (`targetWorkers`). A training program with spare cores can start a worker with `local: true`
 * in addition to those of other hosts.
 * @throws LeatError `already_exists` when the port is in use; `failed_precondition` when it would
 * listen beyond this machine without a token; `invalid_argument` for invalid settings;
 * `permission_denied` and `not_found` for a sandbox that grants what this program itself lacks.
 *
 * @example
 * ```ts ignore
 * import { serveWorker } from "./mod.ts";
 *
 * await using worker = await serveWorker({ dispatcher: "ws://10.0.0.5:5050", token });
 * throw await worker.failed;
 * ```
 *
 * @example A worker in the training program, which shares the work with workers elsewhere
 * ```ts
 * import { Dataset, serveDispatcher, serveWorker } from "../mod.ts";
 *
 * await using dispatcher = await serveDispatcher({ logLevel: "off" });
 * const service = dispatcher.address;
 * await using _here = await serveWorker({ dispatcher: service, local: true, logLevel: "off" });
 * await using _there = await serveWorker({ dispatcher: service, logLevel: "off" });
 * const squares = Dataset.range(100).map((x) => x * x)
 *   .distribute({ service, processingMode: "DYNAMIC" });
 * let count = 0;
 * for await (const _square of squares) count++;
 * console.log(count); // 100
 * ```
 */
export async function serveWorker(config: WorkerServerConfig): Promise<WorkerServer> {
  checkWorkerConfig(config);
  const { sandbox = false, tokens } = config;
  if (sandbox !== false) {
    const hasFile = tokens !== undefined && "file" in tokens;
    const secrets = hasFile ? [{ what: "tokens.file", path: tokens.file }] : [];
    await requireSecretsOutside(sandbox === true ? {} : sandbox, secrets);
  }
  // Loaded lazily: most programs never serve.
  const { RunningWorker } = await import("./running_worker.ts");
  return new RunningWorker(config);
}
