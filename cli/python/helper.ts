/**
 * The helper process of a Python program: it runs a pipeline, or the client of a service, and sends
 * the elements to the program. The Python package `leat` starts it; `docs/python.md` says with
 * which permissions.
 */
import { Console } from "node:console";
import process from "node:process";
import { LeatError } from "../../core/error.ts";
import { inPreOrder } from "../../data/node.ts";
import { areElementsSeen } from "../../data/udf/seen_elements.ts";
import type { Dataset } from "../../mod.ts";
import { movedOutput } from "../../platform/process/moved_output.ts";
import { linkToParent, localNode } from "../../platform/process/parent_link.ts";
import { standardOutput } from "../../platform/process/pipes.ts";
import { Edge } from "../../platform/sandbox/edge.ts";
import { KernelCalls } from "../../platform/sandbox/guards/kernel_calls.ts";
import { explained } from "./explained.ts";
import { Feed } from "./feed.ts";
import { openDataset, type OpenRequest } from "./opening.ts";
import { keepsOrder } from "./order.ts";
import type { Snapshot } from "./snapshots.ts";
import { withStack } from "./error_stack.ts";

/** Time for this process to leave a service after the Python program has ended, in ms. */
const LEAVING_MS = 1_000;

// Standard output carries messages, so the console writes to standard error.
globalThis.console = new Console(process.stderr) as unknown as typeof console;
const kernel = Deno.build.os === "linux" ? new KernelCalls() : undefined;
// The kernel ends this process with its parent, even while a function never returns.
kernel?.dieWithParent();
// Threads, libraries and other programs print to standard output, too.
const output = kernel === undefined ? standardOutput() : movedOutput(kernel);

let dataset: Dataset<unknown> | undefined;
let feed: Feed | undefined;
/** Settles when the last start has succeeded or failed. */
let lastStart: Promise<unknown> = Promise.resolve();

// No limits are needed, because the program requests only a few batches at a time.
const limits = { highWaterBytes: Infinity, lowWaterBytes: Infinity };
const edge: Edge = new Edge(linkToParent({ lendsSlots: true, limits }, output), localNode(), {
  open: (request) => addingStack(() => open(request as OpenRequest)),
  start: (request) => addingStack(() => startInTurn(request as StartRequest)),
  take: (request) => current(request).take((request as TakeRequest).received),
  save: (request) => addingStack(() => current(request).save()),
  explain: (request) => explained(dataset!, current(request).explain()),
});
edge.closed.then(async () => {
  Deno.unrefTimer(setTimeout(() => Deno.exit(), LEAVING_MS));
  await feed?.close();
  // A client still has to leave its service; its request keeps this process running until then.
  if (!isClient()) Deno.exit();
});

/** The body of a request for elements. */
interface TakeRequest {
  /** How many answers to such requests the program has received in this iteration. */
  readonly received: number;
}

/** The body of a request that starts an iteration. */
interface StartRequest {
  /** The number of the iteration in this process. */
  readonly iteration: number;
  /** A saved position to continue from. Default: the start of the next epoch. */
  readonly state?: Uint8Array;
  /** How many elements after that position the program has received. */
  readonly skip?: number;
  /** Whether the saved iteration had ended. Then the iteration after it starts. */
  readonly ended?: boolean;
  /** How many epochs the program has begun since then, in a process that has ended. */
  readonly epochs?: number;
}

async function open(request: OpenRequest): Promise<{ cardinality: number }> {
  dataset = await openDataset(request);
  return { cardinality: dataset.cardinality() };
}

/** Whether the pipeline reads from a service, as by `distribute` or `offload` in its module. */
function isClient(): boolean {
  return dataset !== undefined &&
    inPreOrder(dataset.node).some(({ division }) => division === "served");
}

/** Starts an iteration after all earlier starts: one that ended later would replace it. */
function startInTurn(request: StartRequest): Promise<Snapshot> {
  const started = lastStart.then(() => start(request));
  lastStart = started.catch(() => {});
  return started;
}

async function start(request: StartRequest): Promise<Snapshot> {
  const { iteration, state, skip = 0, ended = false, epochs = 0 } = request;
  let begun = await replaceFeed(iteration);
  if (state !== undefined) await begun.restore(state);
  for (let left = epochs + Number(ended); left > 0; left--) begun = await replaceFeed(iteration);
  await begun.skip(skip);
  return skip > 0 ? {} : await begun.beginning();
}

/** Opens an iterator. It is the current one at once, so that it is closed even if its start fails. */
async function replaceFeed(iteration: number): Promise<Feed> {
  if (dataset === undefined) throw new LeatError("failed_precondition", "No pipeline is open");
  await feed?.close();
  feed = undefined;
  const isOrdered = keepsOrder(dataset.node);
  const elements = dataset.iterator({ isReadOnly: true, needsOrder: isOrdered });
  return feed = new Feed(iteration, elements, !areElementsSeen(dataset.node), isOrdered);
}

function current(request: unknown): Feed {
  const { iteration } = request as { iteration: number };
  if (feed?.iteration === iteration) return feed;
  throw new LeatError("failed_precondition", "Another iteration of this loader has begun");
}

/** Adds to an error of `method` the calls in the pipeline's files that led to it. */
async function addingStack<T>(method: () => Promise<T>): Promise<T> {
  try {
    return await method();
  } catch (error) {
    throw withStack(error);
  }
}
