/** Checks options at the start, so that a misspelt or invalid one is an error. */
import type { Credentials } from "../actors/client/starting.ts";
import type { ScalingOptions } from "../actors/dispatcher/scaling/autoscaler.ts";
import { isWorkerName, WORKER_NAME_FORM } from "../actors/runtime/checks.ts";
import { CERTIFICATE_BEGINNING, hasCertificate } from "../core/certificates.ts";
import { LeatError } from "../core/error.ts";
import { invalidArgument, show, TIMER_MS_MAX } from "../data/check.ts";
import type { DispatcherServerConfig } from "./dispatcher_server.ts";
import type { LocalClusterOptions, LocalWorkerOptions } from "./cluster/local_cluster_options.ts";
import type { Quotas } from "../actors/dispatcher/jobs/quotas.ts";
import { secretiveServices } from "../platform/nodes/service_address.ts";
import type { ServiceNodeConfig } from "../platform/nodes/service_node.ts";
import type { TokenEntry } from "../platform/nodes/tokens_file.ts";
import type { RequestOptions } from "../platform/storage/http_client.ts";
import {
  checkStorageOptions,
  type StorageOptions,
  type WorkerStorage,
} from "../platform/storage/storage.ts";
import type { WorkerServerConfig } from "./worker_server.ts";

/** The least timeout for missed heartbeats, in ms: a heartbeat and its answer take about as long. */
const HEARTBEAT_TIMEOUT_MIN_MS = 10;

/** The required form of an option, its check, and whether errors must hide the value. */
type Check = readonly [wanted: string, holds: (value: unknown) => boolean, isSecret?: true];

/** One check for each option of `O`: the compiler refuses missing and unknown names. */
type Checks<O> = { readonly [name in keyof Required<O>]: Check };

const isNumber = (value: unknown): value is number => Number.isFinite(value);
const isObject = (value: unknown) => typeof value === "object" && value !== null;

const oneOf = (...words: readonly string[]): Check => [
  `one of ${words.join(", ")}`,
  (value) => words.includes(value as string),
];

/** For objects with secrets that are checked where they are used. */
const SECRETS: Check = ["an object", isObject, true];

/** For options that are checked where they are used. */
const ANYTHING: Check = ["", () => true];
const OBJECT: Check = ["an object", isObject];
const BOOLEAN: Check = ["a boolean", (value) => typeof value === "boolean"];
const TEXT: Check = ["a non-empty string", (value) => typeof value === "string" && value !== ""];
const SECRET: Check = [TEXT[0], TEXT[1], true];
/** Not shown: it may be a key. */
const CERTIFICATES: Check = [
  `certificates in PEM (${CERTIFICATE_BEGINNING}…)`,
  hasCertificate,
  true,
];
const TAGS: Check = [
  "an array of non-empty strings",
  (value) => Array.isArray(value) && value.every(TEXT[1]),
];
const TIME: Check = ["a number of ms of at least 0", (value) => isNumber(value) && value >= 0];
/** A time that a timer of the platform waits for. */
const TIMER: Check = [
  `a number of ms from 0 to ${TIMER_MS_MAX}`,
  (value) => TIME[1](value) && value as number <= TIMER_MS_MAX,
];
const TIME_OR_NEVER: Check = [
  `${TIME[0]}, or -1 for never`,
  (value) => TIME[1](value) || value === -1,
];
/** A timeout for missed heartbeats. */
const HEARTBEAT_TIMEOUT: Check = [
  `a number of ms of at least ${HEARTBEAT_TIMEOUT_MIN_MS}`,
  (value) => isNumber(value) && value >= HEARTBEAT_TIMEOUT_MIN_MS,
];
const BYTES: Check = ["a number of bytes above 0", (value) => isNumber(value) && value > 0];
const COUNT: Check = [
  "an integer of at least 1",
  (n) => Number.isSafeInteger(n) && n as number > 0,
];
const CARRIER = oneOf("inline", "thread", "websocket");

const storage: Checks<WorkerStorage> = {
  storage: OBJECT,
  storageLatencyMs: TIMER,
  imageBytesMax: BYTES,
  services: ["an object that has { token, ca } for each address", isObject, true],
};

const farStorage: Checks<StorageOptions> = {
  s3: SECRETS,
  gs: SECRETS,
  http: SECRETS,
  requests: OBJECT,
};

const requests: Checks<RequestOptions> = {
  timeoutMs: [
    `a number of ms above 0 and at most ${TIMER_MS_MAX}`,
    (value) => TIMER[1](value) && value !== 0,
  ],
  attemptsMax: COUNT,
  backoffMs: TIMER,
  backoffMsMax: [TIME[0], (value) => value === Infinity || TIME[1](value)],
};

const worker: Checks<LocalWorkerOptions> = {
  ...storage,
  tags: TAGS,
  runners: oneOf("thread", "inline"),
  confine: ANYTHING,
  heartbeatMs: TIME,
};

const { tags: _tags, ...everyWorker } = worker;

const cluster: Checks<LocalClusterOptions> = {
  ...everyWorker,
  workers: ANYTHING,
  scaling: OBJECT,
  carrier: CARRIER,
  placement: OBJECT,
  journal: TEXT,
  clientRefreshMs: TIME,
  workerTimeoutMs: HEARTBEAT_TIMEOUT,
  clientTimeoutMs: HEARTBEAT_TIMEOUT,
  jobGcTimeoutMs: TIME_OR_NEVER,
  runnerDeathsMax: COUNT,
  windowBytesMax: BYTES,
  skipAfterMs: TIME,
  roundsBytesMax: BYTES,
  logLevel: oneOf("debug", "info", "warn", "error", "off"),
};

const placement: Checks<NonNullable<LocalClusterOptions["placement"]>> = {
  dispatcher: CARRIER,
  worker: CARRIER,
  cache: CARRIER,
  reads: CARRIER,
};

const credentials: Checks<Credentials> = { token: SECRET, ca: CERTIFICATES };

const scaling: Checks<ScalingOptions> = {
  minWorkers: ANYTHING,
  maxWorkers: ANYTHING,
  intervalMs: ANYTHING,
  measureMs: ANYTHING,
  downAfterMs: ANYTHING,
};

const node: Checks<ServiceNodeConfig> = {
  hostname: TEXT,
  port: [
    "an integer from 0 to 65535",
    (port) => Number.isInteger(port) && port as number >>> 16 === 0,
  ],
  advertise: TEXT,
  token: SECRET,
  tokens: [
    "an array of { name, role, token }, or { file }",
    (tokens) =>
      Array.isArray(tokens) || isObject(tokens) && TEXT[1]((tokens as { file?: unknown }).file),
    true,
  ],
  cert: TEXT,
  key: SECRET,
  ca: CERTIFICATES,
  insecure: BOOLEAN,
  logLevel: cluster.logLevel,
};

const dispatcherServer: Checks<DispatcherServerConfig> = {
  ...node,
  journal: TEXT,
  workers: ANYTHING,
  scaling: OBJECT,
  workerTimeoutMs: HEARTBEAT_TIMEOUT,
  clientTimeoutMs: HEARTBEAT_TIMEOUT,
  workerGraceMs: HEARTBEAT_TIMEOUT,
  clientGraceMs: HEARTBEAT_TIMEOUT,
  jobGcTimeoutMs: TIME_OR_NEVER,
  windowSplits: COUNT,
  runnerDeathsMax: COUNT,
  quotas: OBJECT,
};

const quotas: Checks<Quotas> = {
  datasetBytesMax: COUNT,
  datasetsBytesMax: COUNT,
  allDatasetsBytesMax: COUNT,
  parametersBytesMax: COUNT,
  allParametersBytesMax: COUNT,
  splitsBytesMax: COUNT,
  allSplitsBytesMax: COUNT,
  jobsMax: COUNT,
  tasksMax: COUNT,
  clientsMax: COUNT,
  requestsPerSecondMax: COUNT,
};

const workerServer: Checks<WorkerServerConfig> = {
  ...node,
  ...storage,
  dispatcher: ANYTHING,
  name: [WORKER_NAME_FORM, isWorkerName],
  tags: TAGS,
  local: BOOLEAN,
  sharesSlots: BOOLEAN,
  heartbeatMs: TIME,
  dispatcherTimeoutMs: TIME,
  windowBytesMax: BYTES,
  skipAfterMs: TIME,
  roundsBytesMax: BYTES,
  ownProcess: BOOLEAN,
  sandbox: ANYTHING,
  runawayThreadsMax: COUNT,
  runawayAfterMs: TIME,
};

/** @throws {LeatError} `invalid_argument` that names the option and the value. */
export function checkClusterOptions(options: LocalClusterOptions): void {
  check("LocalCluster", cluster, options);
  check("LocalCluster: placement", placement, options.placement ?? {});
  check("LocalCluster: scaling", scaling, options.scaling ?? {});
  checkStorage("LocalCluster", options);
}

/** @throws {LeatError} As {@linkcode checkClusterOptions}. */
export function checkWorkerOptions(options: LocalWorkerOptions): void {
  check("addWorker", worker, options);
  checkStorage("addWorker", options);
}

/** @throws {LeatError} As {@linkcode checkClusterOptions}. */
export function checkDispatcherConfig(config: DispatcherServerConfig): void {
  check("serveDispatcher", dispatcherServer, config);
  check("serveDispatcher: scaling", scaling, config.scaling ?? {});
  check("serveDispatcher: quotas", quotas, config.quotas ?? {});
  checkTokens("serveDispatcher", config);
}

/** @throws {LeatError} As {@linkcode checkClusterOptions}. */
export function checkWorkerConfig(config: WorkerServerConfig): void {
  check("serveWorker", workerServer, config);
  checkTokens("serveWorker", config);
  checkStorage("serveWorker", config);
}

/** Refuses entries without a name, role or token. Errors show none, because it may be a secret. */
function checkTokens(what: string, { tokens }: Pick<ServiceNodeConfig, "tokens">): void {
  if (!Array.isArray(tokens)) return;
  const index = tokens.findIndex((entry: unknown) => {
    const { name, role, token }: Partial<TokenEntry> = isObject(entry) ? entry as TokenEntry : {};
    return ![name, role, token].every(TEXT[1]);
  });
  if (index < 0) return;
  throw new LeatError(
    "invalid_argument",
    `${what}: tokens[${index}] must be { name, role, token }, each a non-empty string`,
  );
}

function checkStorage(what: string, options: WorkerStorage): void {
  check(`${what}: storage`, farStorage, options.storage ?? {});
  checkStorageOptions(`${what}: storage`, options.storage ?? {});
  check(`${what}: storage.requests`, requests, options.storage?.requests ?? {});
  checkServices(what, options);
}

/** Checks `services`. Errors show only addresses and field names: a misplaced value may be a secret. */
function checkServices(what: string, { services = {} }: Pick<WorkerStorage, "services">): void {
  secretiveServices(Object.keys(services), `${what}: services`);
  for (const [address, given] of Object.entries(services)) {
    const where = `${what}: services["${address}"]`;
    if (!isObject(given)) {
      throw new LeatError("invalid_argument", `${where} must be an object, { token, ca }`);
    }
    check(where, credentials, given);
  }
}

function check<O extends object>(what: string, checks: Checks<O>, options: O): void {
  if (!isObject(options)) throw invalidArgument(what, "options", "an object", options);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const wanted = Object.hasOwn(checks, name) ? checks[name as keyof O] : undefined;
    if (wanted === undefined) {
      throw new LeatError(
        "invalid_argument",
        `${what}: there is no option ${show(name)}; its options are ` +
          `${Object.keys(checks).join(", ")}`,
      );
    }
    const [form, holds, isSecret = false] = wanted;
    if (holds(value)) continue;
    if (!isSecret) throw invalidArgument(what, name, form, value);
    throw new LeatError(
      "invalid_argument",
      `${what}: ${name} must be ${form}, got ${kindOf(value)}`,
    );
  }
}

/** Describes a malformed secret without its value. */
function kindOf(value: unknown): string {
  if (value === "") return "an empty one";
  if (value === null) return "null";
  const type = Array.isArray(value) ? "array" : typeof value;
  return `one of type ${type}, which is not shown`;
}
