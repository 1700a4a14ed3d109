/**
 * The program of a confined process, which runs one pipeline with untrusted user functions. These may
 * change everything in this process. What confines them is outside of the process: Deno's permissions,
 * the kernel's limits, and the worker, which trusts no byte from here and may kill the process.
 */
import { Console } from "node:console";
import process from "node:process";
import { LeatError } from "../../core/error.ts";
import { provideParts } from "../../data/foreign/opened_part.ts";
import type { Split } from "../../data/sharding/splits.ts";
import { provideIterators } from "../../actors/client/distributed_iterator.ts";
import { PipelineRunner, PipelineRunners } from "../../actors/worker/runner/pipeline_runner.ts";
import type {
  CompressionWish,
  OwnStep,
  RunnerOutcome,
  RunnerSettings,
  RunnerSplits,
  RunnerUsage,
} from "../../actors/worker/runner/runner.ts";
import { FramePool } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";
import { processUsage } from "../process_usage.ts";
import { launcherArgument, linkToParent, localNode } from "../process/parent_link.ts";
import { type AskHost, ConfinedHost } from "./host/confined_host.ts";
import { confinedAccess } from "./host/confined_services.ts";
import { explainDenial } from "./denials.ts";
import { Edge } from "./edge.ts";
import type { FetchedModule } from "./modules/fetched_modules.ts";
import { partMethods } from "./foreign/foreign_parts.ts";
import { importByHooks } from "./modules/module_hooks.ts";
import { type KernelGuards, kernelGuards } from "./guards/kernel_guards.ts";
import { RemoteModules } from "./modules/remote_modules.ts";

export interface ConfinedStart {
  /** Real paths of folders that may be read. */
  readonly readable: readonly string[];
  /** Hosts from which modules may be imported, through the worker. */
  readonly imports: readonly string[];
  /** Delay added to every open and read of a file, in ms. */
  readonly storageLatencyMs: number;
}

/** The arguments of `Runner.next()`. */
interface Step {
  readonly only?: OwnStep;
  readonly wish?: CompressionWish;
}

// Standard output carries the link, so the console prints to standard error.
globalThis.console = new Console(process.stderr) as unknown as typeof console;

let host: ConfinedHost;
let runner: PipelineRunner | undefined;
/** Receives the memory of written elements. */
const pool = new FramePool();

const edge: Edge = new Edge(linkToParent({ recycle: (buffer) => pool.give(buffer) }), localNode(), {
  ping: () => null,
  start: (start) => prepare(start as ConfinedStart),
  run: (settings) => run(settings as RunnerSettings),
  next: (step) => next(step as Step),
  listSplits: (graph) => listSplits(graph as Uint8Array),
  ...partMethods((method, args) => edge.ask(method, args), () => host),
});
const askHost: AskHost = (method, args) => edge.ask("host", { method, args });
const splits: RunnerSplits = {
  next: async (source, repetition) =>
    await edge.ask("split", { source, repetition }) as Split | null,
  total: async (source) => await edge.ask("total", source) as number,
  read: async (split, from) => (await edge.ask("read", { split, from }) as Payload).bytes,
};
// The worker has closed the link, or has ended.
edge.closed.then(() => Deno.exit());

function prepare({ readable, imports, storageLatencyMs }: ConfinedStart): KernelGuards {
  const modules = new RemoteModules(async (url) => await edge.ask("module", url) as FetchedModule);
  // Without granted hosts Deno itself refuses all remote imports (`--deny-import`).
  if (imports.length > 0) importByHooks(modules);
  const askPython = (request: unknown) => edge.ask("python", request);
  host = new ConfinedHost(askHost, askPython, modules, readable, storageLatencyMs);
  provideIterators(confinedAccess(askHost));
  provideParts();
  return kernelGuards(launcherArgument());
}

function run(settings: RunnerSettings): null {
  const betweenSteps = () => host.yield();
  runner = new PipelineRunner(settings, splits, host, { pool, betweenSteps });
  return null;
}

async function next({ only, wish }: Step): Promise<unknown> {
  if (runner === undefined) return { outcome: { kind: "end" }, bytesRead: 0 };
  const running = runner;
  const outcome = withExplainedDenial(await running.next(only, wish));
  const message = "frame" in outcome
    ? { ...outcome, frame: new Payload(outcome.frame, { isAlone: true }) }
    : outcome;
  return { outcome: message, bytesRead: running.bytesRead, ...usageIfDue() };
}

/** How often the process reports its resource usage to the worker, in ms. */
const USAGE_EVERY_MS = 500;
let usageDueMs = 0;

function usageIfDue(): { readonly usage?: RunnerUsage } {
  const nowMs = performance.now();
  if (nowMs < usageDueMs) return {};
  usageDueMs = nowMs + USAGE_EVERY_MS;
  const { cpuSeconds, memoryBytes } = processUsage(false);
  return { usage: { cpuSeconds, memoryBytes } };
}

function withExplainedDenial(outcome: RunnerOutcome): RunnerOutcome {
  return outcome.kind === "error" ? { ...outcome, error: explainDenial(outcome.error) } : outcome;
}

async function listSplits(graph: Uint8Array): Promise<unknown> {
  try {
    return await new PipelineRunners(host).listSplits(graph);
  } catch (error) {
    throw LeatError.fromWire(explainDenial(LeatError.from(error).toWire()));
  }
}
