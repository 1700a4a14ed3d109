/** A function on the thread that calls it for a pipeline of another thread. */
import { LeatError } from "../../core/error.ts";
import { RandomStream } from "../../core/philox.ts";
import type { Host } from "../host.ts";
import { OperatorMeter } from "../iterators/stats.ts";
import { Call, isThenable } from "../udf/call.ts";
import { mayUse } from "../udf/captured_names.ts";
import { deserializeFunction } from "../udf/user_function.ts";
import type { BlockOutcome, CallBlock, CallOutcome, ThreadFunction } from "./function_threads.ts";
import { pack, unpack } from "./packing.ts";
import { packError } from "./packed_error.ts";

/** How many arguments `map` and `filter` pass before the last. */
const ARITY = 1;

export class CalledFunction {
  readonly #call: Call;
  readonly #host: Host;

  private constructor(call: Call, host: Host) {
    this.#call = call;
    this.#host = host;
  }

  /** Loads a function. Rejects like its first call. */
  static async load({ fn, random, operator, number, ...counted }: ThreadFunction, host: Host) {
    const bound = deserializeFunction(unpack(fn));
    const source = bound.fn.toString();
    // Loaded on demand: most functions make no datasets.
    if (mayUse(["Dataset"], source, ARITY)) await import("../dataset.ts");
    const stats = new OperatorMeter(operator, number);
    const stream = RandomStream.named(random);
    const context = { ...counted, host, stats, callStream: () => stream };
    const call = new Call(bound, context, { overlapping: true });
    await call.load(ARITY);
    return new CalledFunction(call, host);
  }

  /** Calls it on every element, and adds the buffers of results that should move to `buffers`. */
  async run(
    { indexes, elements }: Omit<CallBlock, "buffers">,
    buffers: ArrayBuffer[],
  ): Promise<BlockOutcome> {
    const startedAtMs = this.#host.nowMs();
    const outcomes: CallOutcome[] = [];
    let waited = false;
    for (let i = 0; i < indexes.length; i++) {
      try {
        let result = this.#call.again(indexes[i]!, unpack(elements[i]));
        if (isThenable(result)) {
          waited = true;
          result = await result;
        }
        outcomes.push(packed(result, buffers));
      } catch (error) {
        outcomes.push({ error: packError(error) });
      }
    }
    return { outcomes, tookMs: this.#host.nowMs() - startedAtMs, waited };
  }
}

/** Packs a result. If it cannot be sent, the pipeline's thread repeats the call. */
function packed(result: unknown, buffers: ArrayBuffer[]): CallOutcome {
  const before = buffers.length;
  try {
    return { value: pack(result, buffers) };
  } catch (error) {
    buffers.length = before;
    return { obstacle: LeatError.from(error).message };
  }
}
