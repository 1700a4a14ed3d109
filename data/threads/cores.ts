/** Which threads one iteration may use, and how many functions may run at once on them. */
import type { Host } from "../host.ts";
import { type DatasetNode, inPreOrder } from "../node.ts";
import { NodeFunction } from "../udf/call.ts";
import type { FunctionThreads } from "./function_threads.ts";

/** How an iteration uses threads. */
export interface ThreadOptions {
  /** `true`: from the first call on; `false`: never. Default: if measurements say that it pays. */
  readonly threads?: boolean | undefined;
  /** `cpuBudget`, if it is given. */
  readonly cores?: number | undefined;
}

export class Cores {
  /** The threads that may run parts of the pipeline. */
  readonly own: FunctionThreads | undefined;
  /** The threads that may call functions. Undefined if all run on the thread of the pipeline. */
  readonly pool: FunctionThreads | undefined;
  /** Whether functions move to threads without being measured first. */
  readonly isForced: boolean;
  /** How many parts of the pipeline run on threads of their own. */
  segments = 0;
  readonly #budget: number | undefined;
  readonly #root: DatasetNode;
  /** The numbers of the operators whose functions other threads call. */
  readonly #moved = new Set<number>();
  #operators: number | undefined;

  constructor(root: DatasetNode, host: Host, { threads, cores }: ThreadOptions = {}) {
    this.#root = root;
    this.#budget = cores;
    this.isForced = threads === true;
    this.own = cores === 1 || threads === false ? undefined : host.threads;
    const isUseful = this.isForced || (this.own !== undefined && this.own.count > 1);
    this.pool = isUseful ? this.own : undefined;
  }

  /** How many threads of the pool may work at once. The pipeline's thread counts while it calls functions. */
  get threads(): number {
    const { count } = this.pool!;
    if (this.#budget === undefined) return count;
    this.#operators ??= inPreOrder(this.#root).filter(callsFunction).length;
    const own = this.#moved.size < this.#operators ? 1 : 0;
    return Math.min(count, Math.max(1, this.#budget - own - this.segments));
  }

  /** Notes that other threads call the function of the operator with this number from now on. */
  moves(operator: number): void {
    this.#moved.add(operator);
  }

  /** Notes that the thread of the pipeline calls it again. */
  returns(operator: number): void {
    this.#moved.delete(operator);
  }
}

function callsFunction({ attributes }: DatasetNode): boolean {
  return Object.values(attributes).some((value) => value instanceof NodeFunction);
}
