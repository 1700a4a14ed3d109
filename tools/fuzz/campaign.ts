/** Fuzzes one target. Child processes run inputs, and each failure is shrunk. */
import { runChild } from "./child_run.ts";
import type { Failure, News, Reason, Task } from "./news.ts";
import { shrink } from "./shrink.ts";

/** Number of failures after which a target is abandoned. */
const FAILURES_MAX = 10;
/** Maximum number of processes that shrink an input which ends its process. */
const SHRINK_CHILDREN_MAX = 30;
/** Maximum time to shrink such an input, in ms. */
const SHRINK_MS = 60_000;

/** The inputs to run, and for how long. */
interface CampaignOptions {
  /** The module of the targets. */
  readonly module: string;
  readonly target: string;
  readonly seed: bigint;
  /** Number of inputs. Default: no limit. */
  readonly inputs?: number;
  /** Time limit of the campaign, in ms. Default: none. */
  readonly ms?: number;
  readonly memoryBytesMax: number;
  /** Time limit of one input, in ms. */
  readonly stepMs: number;
  /** Time limit to shrink an input that ends its process, in ms. Default: a minute. */
  readonly shrinkMs?: number;
  /** Called with the number of inputs so far, and the number of failures. */
  readonly onProgress?: (runs: number, failed: number) => void;
  readonly signal?: AbortSignal;
}

/** The result of a campaign. */
export interface CampaignResult {
  readonly runs: number;
  readonly valid: number;
  readonly failures: readonly Failure[];
}

/** Fuzzes one target. Ends after the last input, at the time limit, or when `signal` is aborted. */
export async function fuzz(options: CampaignOptions): Promise<CampaignResult> {
  const { seed, inputs = Number.MAX_SAFE_INTEGER, ms = Infinity, stepMs, signal } = options;
  const { module, target, memoryBytesMax, onProgress = () => {} } = options;
  const endMs = performance.now() + ms;
  const failures = new Map<string, Failure>();
  let first = 0;
  let valid = 0;
  let isCareful = false;
  const keep = async (failure: Failure) => {
    if (failures.has(failure.signature)) return;
    const input = await smaller(options, failure);
    failures.set(failure.signature, { ...failure, input });
  };
  const isStopped = () => signal?.aborted === true;
  while (first < inputs && !isStopped() && failures.size < FAILURES_MAX) {
    const remainingMs = endMs - performance.now();
    if (remainingMs <= 0) break;
    const task: Task = {
      ...{ module, target, seed: String(seed), first, end: inputs, isCareful, memoryBytesMax },
      ...(Number.isFinite(remainingMs) ? { ms: remainingMs } : {}),
    };
    let reported = 0;
    const onNews = (news: News) => {
      if (news.kind === "at") onProgress(news.index, failures.size + reported);
      else if (news.kind === "failure") reported++;
    };
    const end = await runChild(task, { stepMs, onNews, ...(signal ? { signal } : {}) });
    valid += end.done?.valid ?? end.at?.valid ?? 0;
    if (isStopped()) {
      for (const failure of end.failures) failures.set(failure.signature, failure);
      first = end.at?.index ?? first;
      break;
    }
    for (const failure of end.failures) await keep(failure);
    if (end.died === undefined) {
      first += end.done!.runs;
      break;
    }
    const { reason, said } = end.died;
    if (end.at === undefined) {
      throw new Error(`The target ${target} cannot be opened:\n${said}`);
    }
    if (reason === "memory") {
      first = end.failures.at(-1)!.index + 1;
      isCareful = false;
    } else if (!isCareful) {
      // One of the inputs from here on ended the process. The next child finds out which.
      first = end.at.index;
      isCareful = true;
    } else {
      const { index, input } = end.at;
      const failure: Failure = {
        ...{ kind: "failure", index, reason, message: said, input: input! },
        signature: `${reason}\n${said.replaceAll(/\d+/g, "#").slice(0, 200)}`,
      };
      // On a busy machine, a process may be silent for other reasons.
      const isSure = reason !== "hang" ||
        await failsAlone(options, reason, Uint8Array.fromBase64(input!));
      if (isSure) await keep(failure);
      first = index + 1;
      isCareful = false;
    }
  }
  return { runs: first, valid, failures: [...failures.values()] };
}

/** Shrinks an input that ended its process. Each candidate runs in a process of its own. */
async function smaller(options: CampaignOptions, failure: Failure): Promise<string> {
  if (failure.reason === "error") return failure.input;
  const { reason } = failure;
  const untilMs = performance.now() + (options.shrinkMs ?? SHRINK_MS);
  const best = await shrink(
    Uint8Array.fromBase64(failure.input),
    async (candidate) =>
      performance.now() < untilMs && await failsAlone(options, reason, candidate),
    { runsMax: SHRINK_CHILDREN_MAX },
  );
  return best.toBase64();
}

/** Whether an input alone ends its process for that reason. */
async function failsAlone(
  { module, target, seed, memoryBytesMax, stepMs }: CampaignOptions,
  reason: Reason,
  input: Uint8Array,
): Promise<boolean> {
  const task: Task = {
    ...{ module, target, seed: String(seed), first: 0, end: 1, isCareful: true, memoryBytesMax },
    input: input.toBase64(),
  };
  const { died } = await runChild(task, { stepMs });
  return died?.reason === reason;
}
