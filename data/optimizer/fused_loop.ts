/**
 * Loops that call the functions of adjacent `map`s and `filter`s on one element after the other.
 *
 * The source of a loop is generated, with one call site for each function: the engine then inlines the
 * functions. It cannot inline at a call site that many functions share, and such a loop is several
 * times slower. The source depends only on the kinds of the operators.
 */
import type { InputBlock } from "../elements/block.ts";
import type { Call } from "../udf/call.ts";
import type { OperatorMeter } from "../iterators/stats.ts";
import type { SpecCheck } from "../elements/spec_check.ts";

/** What an operator does with its function's result: gives it (`map`), or gives the element or not. */
export type LoopKind = "map" | "filter";

/** The iterator of an operator whose function a loop calls. */
export interface LoopStage {
  readonly kind: LoopKind;
  readonly call: Call;
  readonly stats: OperatorMeter;
  /** Checks results of `map`. */
  readonly check: SpecCheck | undefined;
  /**
   * Handles a result that the loop cannot: for `map` all but numbers of its spec, for `filter` all
   * but booleans. Returns true if it left the result to `next()`; throws if the element fails.
   */
  deferResult(element: unknown, result: unknown): boolean;
  /** Leaves an element of this operator, or an element's error, to `next()`. */
  defer(outcome: { readonly failed: boolean; readonly value: unknown }): void;
}

/** Where a loop writes elements. */
export type LoopSink = unknown[] | Float64Array;

/**
 * Calls the functions of `stages`, the lowest first, on the elements of `block` up to `block.stop`,
 * which is read each time because a function may dispose the iterators. Writes the resulting elements
 * to `into` from `to` on, and returns their number. Stops at an element that it leaves to `next()`. If
 * `into` is an array of numbers, it leaves other elements to `next()`.
 */
export type FusedLoop = (
  block: InputBlock,
  stages: readonly LoopStage[],
  into: LoopSink,
  to: number,
) => number;

const LOOPS_MAX = 256;

/** Loops by sink, kinds and functions' texts, the oldest first. */
const loops = new Map<string, FusedLoop>();

/**
 * The loop for these operators, whose functions must be loaded. Undefined if the process may not
 * make code from strings. Functions with the same text share a loop, so that a closure that is
 * created many times is compiled once.
 */
export function fusedLoop(
  stages: readonly LoopStage[],
  sink: "elements" | "numbers",
): FusedLoop | undefined {
  const shapes = stages.map((stage) => checksNumbers(stage) ? `checked ${stage.kind}` : stage.kind);
  const texts = stages.map(({ call }) => Function.prototype.toString.call(call.fn));
  const key = JSON.stringify([sink, shapes, texts]);
  const known = loops.get(key);
  if (known !== undefined) return known;
  let made: FusedLoop;
  try {
    // The number makes the text unique: V8 shares type feedback among functions of equal text.
    const source = `// ${loopsMade++}\n${sourceOf(stages, sink)}`;
    made = new Function("block", "stages", "into", "to", source) as FusedLoop;
  } catch {
    return undefined;
  }
  if (loops.size === LOOPS_MAX) loops.delete(loops.keys().next().value!);
  loops.set(key, made);
  return made;
}

let loopsMade = 0;

function sourceOf(stages: readonly LoopStage[], sink: "elements" | "numbers"): string {
  const top = stages.length - 1;
  const names = stages.map((_, k) => `
    const s${k} = stages[${k}], c${k} = s${k}.call, m${k} = s${k}.stats, check${k} = s${k}.check;
    const f${k} = c${k}.fn, extra${k} = c${k}.extra;`);
  const steps = stages.map((stage, k) => `
        stage = s${k};
        c${k}.index++;
        ${stepOf(stage, k)}
        m${k}.gave(x);`);
  return `"use strict";
    ${names.join("")}
    const { items } = block;
    const first = c0.index - block.at;
    let n = to, x, stage = s0;
    try {
      for (let i = block.at; i < block.stop; i++) {
        x = items[i];
        ${steps.join("")}
        ${sink === "numbers" ? keptUnlessNumber(top) : ""}
        into[n++] = x;
      }
    } catch (error) {
      stage.defer({ failed: true, value: stage.call.failure(error) });
    }
    block.at = Math.min(c0.index - first, block.end);
    return n - to;`;
}

function keptUnlessNumber(top: number): string {
  return `if (typeof x !== "number") {
          s${top}.defer({ failed: false, value: x });
          break;
        }`;
}

/** Whether a number may not fit the spec of the stage's results. */
function checksNumbers({ check }: LoopStage): boolean {
  return check !== undefined && !check.takesAnyNumber;
}

function stepOf(stage: LoopStage, k: number): string {
  if (stage.kind === "filter") {
    return `const verdict${k} = f${k}(x, extra${k});
        if (verdict${k} !== true) {
          if (verdict${k} === false) continue;
          s${k}.deferResult(x, verdict${k});
          break;
        }`;
  }
  const fits = !checksNumbers(stage) ? "" : ` || !check${k}.fitsNumber(result${k})`;
  return `const result${k} = f${k}(x, extra${k});
        if ((typeof result${k} !== "number"${fits}) && s${k}.deferResult(x, result${k})) break;
        x = result${k};`;
}
