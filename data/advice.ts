/** Finds what is slow or large in a running pipeline, by rules over the figures of its operators. */
import { bytesText, percentText } from "./amounts.ts";
import { type DatasetNode, inPreOrder, UNKNOWN_CARDINALITY } from "./node.ts";
import type { IteratorStats, OperatorStats } from "./iterators/stats.ts";
import { waitsOutside } from "./autotune/measured_model.ts";

export interface PipelineRun {
  readonly root: DatasetNode;
  /** The operators' figures, in pre-order. */
  readonly stats: IteratorStats;
  /** For how long other operators waited for each one, where they count it. Default: nowhere. */
  readonly awaitedMs?: readonly number[];
  /** From the first `next()` until now, or until the end, in milliseconds. */
  readonly runMs: number;
  /** The part of that time spent waiting for promises of `next()`, in milliseconds. */
  readonly waitedMs: number;
  /** The part of that time in which calls of `next()` held the thread, in milliseconds. */
  readonly heldMs: number;
  /** Whether workers may have prepared a part of what an `offload` gave. Default false. */
  readonly isOffloaded?: boolean;
  /** Whether the pipeline has reached its end. Default false. */
  readonly hasEnded?: boolean;
}

/** The cost of one operator, without its inputs. */
interface Cost {
  readonly node: DatasetNode;
  readonly stats: OperatorStats;
  /** Time on the thread. */
  readonly workMs: number;
  /** Time that its consumer waited for it. */
  readonly latencyMs: number;
  /** Whether a service runs the operators before it. */
  readonly isServed: boolean;
}

interface Facts {
  /** The operator that costs most. */
  readonly top: Cost;
  /** The larger of `top.workMs` and `top.latencyMs`, as a share of the run's time, from 0 to 1. */
  readonly share: number;
  /** Whether that operator spends more time at work than it is waited for. */
  readonly works: boolean;
  /** The consumer's own share of the run's time. */
  readonly consumerShare: number;
  /** Whether the last operator reads ahead. */
  readonly readsAhead: boolean;
  readonly numParallelCalls: unknown;
  readonly numParallelReads: unknown;
}

interface Rule {
  readonly when: (facts: Facts) => boolean;
  readonly say: (facts: Facts) => string;
}

/** An operator with a smaller share of the time is not worth attention. */
const SHARE_MIN = 0.2;
/** A consumer that is at work for at least this share of the time hardly waits. */
const KEPT_UP = 0.9;
/** Work that is read ahead delays its consumer once it takes this share of the thread. */
const BUSY_SHARE = 0.7;
/** Calls shorter than this cost less than the overhead around them. */
const SHORT_CALL_MS = 0.002;
/** An operator that holds at least this many bytes is reported. */
const HELD_BYTES_MIN = 256 * 2 ** 20;

const DISTRIBUTE_OR_CACHE =
  "distribute() the pipeline over workers, or cache() what it gives if that is the " +
  "same in every epoch";
const OFFLOADED =
  "Workers may prepare a part of the elements, so the figures of this host do not show what is " +
  "slow: offloadProgress() tells what each side gave, and explain() of its plan what limits it.";
const PREFETCH = "prefetch(AUTOTUNE) as the last operator";

/** The first rule that holds decides the advice. */
const RULES: readonly Rule[] = [
  {
    when: ({ share, consumerShare, readsAhead }) =>
      consumerShare >= 0.5 && share < SHARE_MIN ||
      consumerShare >= KEPT_UP && share < BUSY_SHARE && readsAhead,
    say: ({ consumerShare }) =>
      `The pipeline keeps up: its consumer is at work ${percentText(consumerShare)} of the time.`,
  },
  {
    when: ({ share }) => share < SHARE_MIN,
    say: () =>
      "No operator stands out: the time goes into passing elements on. Fewer elements help: " +
      "batch() earlier.",
  },
  {
    when: ({ works, numParallelReads }) => works && numParallelReads !== undefined,
    say: (facts) => `${takes(facts, "of the time, decoding")}: ${DISTRIBUTE_OR_CACHE}.`,
  },
  {
    when: ({ works, top }) => works && top.workMs < SHORT_CALL_MS * callsOf(top),
    say: (facts) =>
      `${takes(facts)}, in very short calls: batch() before it, and write its function for whole ` +
      "batches.",
  },
  {
    when: ({ works, consumerShare, readsAhead }) =>
      works && consumerShare >= SHARE_MIN && !readsAhead,
    say: (facts) =>
      `${takes(facts)}: ${PREFETCH} lets it work while the consumer waits for its device; or ` +
      `${DISTRIBUTE_OR_CACHE}.`,
  },
  {
    when: ({ works, numParallelCalls }) => works && numParallelCalls !== undefined,
    say: (facts) =>
      `${takes(facts)}: numParallelCalls has no effect on a function that does not wait and is ` +
      `called on this thread; ${DISTRIBUTE_OR_CACHE}.`,
  },
  {
    when: ({ works, top }) => works && top.node.adviceFacts.callsSideBySide === true,
    say: (facts) =>
      `${
        takes(facts)
      }: ${DISTRIBUTE_OR_CACHE}; or numParallelCalls: AUTOTUNE, so that other cores call ` +
      "its function.",
  },
  { when: ({ works }) => works, say: (facts) => `${takes(facts)}: ${DISTRIBUTE_OR_CACHE}.` },
  {
    when: ({ top }) => (top.stats.threads?.calls ?? 0) > 0,
    say: (facts) =>
      `${waited(facts)}, although other threads call its function: ${DISTRIBUTE_OR_CACHE}.`,
  },
  {
    when: ({ top }) => top.isServed && isHeldUpOnTheWay(top.stats),
    say: (facts) =>
      `${waited(facts)}, although its workers have elements ready: the network, or this process, ` +
      "is slow. If the network is full, compression or smaller elements help; if not, more requests " +
      "in flight (maxOutstandingRequests) or larger batches. More workers do not.",
  },
  {
    when: ({ top }) => top.isServed,
    say: (facts) =>
      `${waited(facts)}: start more workers, or look at what is slow in one of them by running ` +
      "the pipeline here without distribute().",
  },
  {
    when: ({ numParallelReads }) => numParallelReads === 1,
    say: (facts) =>
      `${
        waited(facts)
      }: numParallelReads: AUTOTUNE reads several files at once; ${PREFETCH} reads ` +
      "while the consumer works.",
  },
  {
    when: (facts) => facts.numParallelReads !== undefined && !prefetchHelps(facts),
    say: (facts) =>
      `${
        waited(facts)
      }: set numParallelReads above ${facts.numParallelReads}, compress the files, ` +
      "or use nearer storage.",
  },
  {
    when: ({ top, numParallelCalls }) =>
      numParallelCalls === undefined && top.node.adviceFacts.callsSideBySide === true,
    say: (facts) =>
      `${waited(facts)}: numParallelCalls lets several of its calls wait side by side.`,
  },
  {
    when: (facts) =>
      typeof facts.numParallelCalls === "number" && facts.numParallelCalls > 0 &&
      !prefetchHelps(facts),
    say: (facts) =>
      `${waited(facts)}: set numParallelCalls above ${facts.numParallelCalls}, if whatever its ` +
      "function waits for can serve more calls.",
  },
  {
    when: prefetchHelps,
    say: (facts) => `${waited(facts)}: ${PREFETCH} lets it continue while the consumer works.`,
  },
  {
    when: () => true,
    say: (facts) =>
      `${waited(facts)}${facts.readsAhead ? ", although its elements are read ahead" : ""}: ` +
      `${DISTRIBUTE_OR_CACHE}.`,
  },
];

/** Reading ahead saves at most the consumer's own share of the time. */
function prefetchHelps({ readsAhead, consumerShare }: Facts): boolean {
  return !readsAhead && consumerShare >= SHARE_MIN;
}

/** Whether requests to workers were open mostly after their elements were produced. */
function isHeldUpOnTheWay({ service }: OperatorStats): boolean {
  const reads = service?.reads ?? [];
  return reads.reduce((sum, { answerMs, heldMs }) => sum + answerMs - 2 * heldMs, 0) > 0;
}

/** Sentences for the user; the last says where the time goes. */
export function adviceOn(run: PipelineRun): string[] {
  const held = inPreOrder(run.root).flatMap(({ adviceFacts: { toHoldLess } }, i) => {
    const { operator, number, bufferedBytes } = run.stats[i]!;
    if (bufferedBytes < HELD_BYTES_MIN) return [];
    const holds = `${operator} (operator ${number}) holds ${bytesText(bufferedBytes)}`;
    return toHoldLess === undefined ? `${holds}.` : `${holds}: ${toHoldLess}.`;
  });
  const facts = factsOf(run);
  if (facts === undefined) return [...held, nothingGiven(run)];
  // Training waits for workers and this host in turn, and this host prepares while training works: no
  // operator's share of the time can be told.
  if (run.isOffloaded === true) return [...held, OFFLOADED];
  return [...held, RULES.find(({ when }) => when(facts))!.say(facts)];
}

function nothingGiven({ root, stats, hasEnded = false }: PipelineRun): string {
  if (!hasEnded || stats[0]!.elements > 0) {
    return "The pipeline has given no element yet: read some, then call explain() again.";
  }
  const { operator, number } = lowestEmpty(treeOf(root, stats)).stats;
  return "The pipeline has ended, and has given no element since it was opened or restored: " +
    `${operator} (operator ${number}) gave none.`;
}

/** The lowest operator that gave no element, of those whose elements are counted here. */
function lowestEmpty(operator: Operator): Operator {
  const { node, inputs } = operator;
  if (node.division === "served") return operator;
  // An input that has elements gave none because nothing read it, as below `take(0)`.
  const empty = inputs.find((input) =>
    input.stats.elements === 0 &&
    (input.node.cardinality === 0 || node.cardinality !== 0 && mayBeEmpty(input))
  );
  return empty === undefined ? operator : lowestEmpty(empty);
}

function mayBeEmpty({ node, stats, inputs }: Operator): boolean {
  return node.cardinality === UNKNOWN_CARDINALITY || stats.errors > 0 || inputs.some(mayBeEmpty);
}

function factsOf(run: PipelineRun): Facts | undefined {
  const { root, stats, runMs, waitedMs, heldMs } = run;
  if (stats[0]!.elements === 0 || !(runMs > 0)) return undefined;
  const operators = inPreOrder(root);
  const planningMs = stats.reduce(
    (sum, { waitMs }, i) => isOffload(operators[i]!) ? sum + waitMs : sum,
    0,
  );
  const costs = costsOf(treeOf(root, stats, run.awaitedMs), waitedMs);
  const ranMs = runMs - planningMs;
  const top = costs.reduce((most, cost) => largest(cost) > largest(most) ? cost : most);
  const { numParallelCalls, numParallelReads } = top.node.attributes;
  return {
    top,
    share: Math.min(1, largest(top) / ranMs),
    works: top.workMs >= top.latencyMs,
    consumerShare: Math.max(0, runMs - waitedMs - heldMs) / ranMs,
    readsAhead: [root, root.inputs[0]].some((node) => node?.adviceFacts.readsAhead),
    numParallelCalls,
    numParallelReads,
  };
}

function largest({ workMs, latencyMs }: Cost): number {
  return Math.max(workMs, latencyMs);
}

interface Operator {
  readonly node: DatasetNode;
  readonly stats: OperatorStats;
  readonly awaitedMs: number;
  readonly inputs: readonly Operator[];
}

function treeOf(root: DatasetNode, all: IteratorStats, awaited: readonly number[] = []): Operator {
  let number = 0;
  const operator = (node: DatasetNode): Operator => {
    const at = number++;
    const inputs = node.inputs.map(operator);
    return { node, stats: all[at]!, awaitedMs: awaited[at] ?? 0, inputs };
  };
  return operator(root);
}

/** The costs of an operator and of all below it. The consumer of `operator` waited `awaitedMs`. */
function costsOf(operator: Operator, awaitedMs: number): Cost[] {
  const { node, stats, inputs } = operator;
  const latencyMs = Math.min(latencyOf(operator, awaitedMs), awaitedMs);
  const isServed = node.division === "served";
  const cost = { node, stats, workMs: stats.selfMs, latencyMs, isServed };
  return [
    ...(isOffload(node) ? [] : [cost]),
    ...inputs.flatMap((input) => {
      // What waits longer reads ahead: the rest of its time delays nobody.
      const waitMs = Math.min(waitOn(input, operator, awaitedMs), awaitedMs);
      return costsOf(input, waitMs);
    }),
  ];
}

/** Whether it is an `offload`. If it offloads nothing, it waits only for its plan. */
function isOffload({ division, isSetting }: DatasetNode): boolean {
  return division === "served" && isSetting;
}

/**
 * How long the consumer waited for the operator alone: without the operator's own waits for its inputs,
 * and without the work of the operator and all below it, which may have run in the meantime.
 */
function latencyOf(operator: Operator, awaitedMs: number): number {
  const { stats, inputs } = operator;
  if (waitsOutside(operator.node) && stats.waitMs > 0) return stats.waitMs;
  const ofInputsMs = inputs.reduce((sum, input) => sum + waitOn(input, operator, awaitedMs), 0);
  return Math.max(0, awaitedMs - ofInputsMs - workOf(operator));
}

function workOf({ stats, inputs }: Operator): number {
  return inputs.reduce((sum, input) => sum + workOf(input), stats.selfMs);
}

/**
 * How long an operator waited for one of its inputs. The figures have only the sum of several inputs:
 * it is divided in proportion to their time.
 */
function waitOn(input: Operator, operator: Operator, awaitedMs: number): number {
  const { node, stats, inputs } = operator;
  // It passes the elements of its input on, and counts no waits for them.
  if (operator.node.isSetting) return Math.max(0, awaitedMs - stats.waitMs);
  if (waitsOutside(operator.node)) return 0;
  if (input.awaitedMs > 0) return input.awaitedMs;
  if (node.adviceFacts.opensDatasets) return input.stats.waitMs;
  if (inputs.length === 1) return stats.waitMs;
  const known = inputs.reduce((sum, { stats }) => sum + stats.waitMs + stats.selfMs, 0);
  return known === 0 ? 0 : stats.waitMs * (input.stats.waitMs + input.stats.selfMs) / known;
}

/** About how often it called its function: once for each element that it gave or that failed. */
function callsOf({ stats }: Cost): number {
  return Math.max(1, stats.elements + stats.errors);
}

function takes({ top, share }: Facts, what = "of the time"): string {
  return `${nameOf(top)} takes ${percentText(share)} ${what}`;
}

function waited({ top, share }: Facts): string {
  return `${nameOf(top)} is waited for ${percentText(share)} of the time`;
}

function nameOf({ stats }: Cost): string {
  return `${stats.operator} (operator ${stats.number})`;
}
