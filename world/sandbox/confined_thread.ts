/**
 * The program of a confined thread: one pipeline, with user functions that may be anybody's.
 *
 * It is run by {@linkcode file://./warden_thread.ts}, with its permissions. The ports that it is given
 * are reachable from nowhere but this module's own edges.
 *
 * @module
 */
import { getHeapStatistics } from "node:v8";
import { workerData } from "node:worker_threads";
// What pipelines import when they first need it: later, nothing of this program can be read.
import "../../data/formats/arrow.ts";
import "../../data/formats/csv.ts";
import "../../data/formats/npz.ts";
import "../../data/formats/parquet.ts";
import "../../data/formats/web_dataset.ts";
import "../../data/formats/zstd_decoder.ts";
import "../glob_walk.ts";
import { loadBuiltins } from "../../core/builtins.ts";
import { LeatError } from "../../core/error.ts";
import type { Split } from "../../data/splits.ts";
import { provideIterators } from "../../actors/client/distributed_iterator.ts";
import { PipelineRunner, PipelineRunners } from "../../actors/worker/pipeline_runner.ts";
import type {
  CompressionWish,
  OwnStep,
  RunnerOutcome,
  RunnerSettings,
  RunnerSplits,
} from "../../actors/worker/runner.ts";
import { type AskHost, ConfinedHost } from "./confined_host.ts";
import { confinedAccess } from "./confined_services.ts";
import { explainDenial } from "./denials.ts";
import { Edge, Moved } from "./edge.ts";
import { machineUrl, type ProgramAccess, programUrls } from "./grants.ts";
import type { FetchedModule } from "./fetched_modules.ts";
import { lockDown } from "./lockdown.ts";
import { RemoteModules } from "./remote_modules.ts";
import { Turns } from "./turns.ts";

/** What a confined thread is started with. */
export interface ConfinedStart {
  /** Leads to the thread that the worker's actors are on. */
  readonly control: MessagePort;
  /** Leads to a thread that is not confined; nobody listens there before it is asked for. */
  readonly host: MessagePort;
  /** Nothing is heard there: it shows by being open that the thread has not ended. */
  readonly life: MessagePort;
  /** Real paths of folders that may be read. */
  readonly readable: readonly string[];
  /** The same of those that files may be made in. */
  readonly writable: readonly string[];
  /** What is not needed any more once this program is loaded. */
  readonly program: ProgramAccess;
  /** Delay added to every open and read of a file, in ms. */
  readonly storageLatencyMs: number;
  /** How long a function may hold the thread without giving way, in ms. */
  readonly stallTimeoutMs: number;
}

const LATE_FORMATS = ["arrow", "csv", "npz", "parquet", "web_dataset", "zstd_decoder"];
const LATE_MODULES = new Set([
  ...LATE_FORMATS.map((name) => import.meta.resolve(`../../data/formats/${name}.ts`)),
  import.meta.resolve("../glob_walk.ts"),
]);

/** How often a thread looks whether its memory has run out, in ms. */
const MEMORY_CHECK_MS = 250;

const start: ConfinedStart = { ...workerData };
// What is left there is found by whoever imports it.
for (const name of Object.keys(workerData)) delete workerData[name];
for (const path of start.program.read) Deno.permissions.revokeSync({ name: "read", path });
for (const host of start.program.imports) Deno.permissions.revokeSync({ name: "import", host });

// Later there is nothing to load them with.
loadBuiltins();

const turns = new Turns(start.stallTimeoutMs, () => control.ask("stalled"));
const control = new Edge(start.control, {
  ping: () => null,
  start: (settings) => startRunner(settings as RunnerSettings),
  next: (step) => next(step as Step),
  listSplits: (graph) => listSplits(graph as Uint8Array),
});
/** What is asked for, as arguments of `Runner.next()`. */
interface Step {
  readonly only?: OwnStep;
  readonly wish?: CompressionWish;
}

const hostEdge = new Edge(start.host, {});
let hostReady: Promise<unknown> | undefined;
const askHost: AskHost = async (method, args) => {
  await (hostReady ??= control.ask("host"));
  return await hostEdge.ask(method, args);
};
const remoteModules = new RemoteModules(async (url) =>
  await control.ask("module", url) as FetchedModule
);
const host = new ConfinedHost(askHost, remoteModules, turns, start.storageLatencyMs);
provideIterators(confinedAccess(askHost));
const splits: RunnerSplits = {
  next: async (source, repetition) =>
    await control.ask("split", { source, repetition }) as Split | null,
  total: async (source) => await control.ask("total", source) as number,
};
let runner: PipelineRunner | undefined;
/** When the step before is done. */
let stepped: Promise<unknown> = Promise.resolve();

// Where memory runs out in a microtask, Deno ends what runs there and tells nobody; but the engine
// has raised its limit by then.
const limit = getHeapStatistics().heap_size_limit;
const memoryCheck = setInterval(() => {
  if (getHeapStatistics().heap_size_limit === limit) return;
  clearInterval(memoryCheck);
  control.ask("exhausted");
}, MEMORY_CHECK_MS);

lockDown({
  readable: start.readable,
  writable: start.writable,
  modules: {
    program: programUrls(),
    machine: machineUrl(),
    late: LATE_MODULES,
    remote: remoteModules,
  },
  port: start.control,
});

function startRunner(settings: RunnerSettings): null {
  runner = new PipelineRunner(settings, splits, host);
  return null;
}

async function next({ only, wish }: Step): Promise<unknown> {
  if (runner === undefined) return { outcome: { kind: "end" }, bytesRead: 0 };
  // Each step begins in a turn: before it the answer before has left, whatever a function does in it.
  const stepping = stepped.then(() => host.yield()).then(() => runner!.next(only, wish));
  stepped = stepping;
  const outcome = told(await stepping);
  const answer = { outcome, bytesRead: runner.bytesRead };
  const buffer = "frame" in outcome ? outcome.frame.buffer : undefined;
  return buffer instanceof ArrayBuffer ? new Moved(answer, [buffer]) : answer;
}

function told(outcome: RunnerOutcome): RunnerOutcome {
  return outcome.kind === "error" ? { ...outcome, error: explainDenial(outcome.error) } : outcome;
}

async function listSplits(graph: Uint8Array): Promise<unknown> {
  try {
    return await new PipelineRunners(host).listSplits(graph);
  } catch (error) {
    throw LeatError.fromWire(explainDenial(LeatError.from(error).toWire()));
  }
}
