/** A function received as text. It stays text until the first call. */
import { LeatError } from "../../core/error.ts";
import type { Host } from "../host.ts";
import { excerptOf, functionScript } from "./free_names.ts";
import type { AnyFunction } from "./user_function.ts";

/** The part of the host that evaluates text. */
export type EvaluationHost = Pick<Host, "evaluate">;

/** The text of a self-contained function that was received from another program. */
export class SourceFunction {
  /** One function expression. */
  readonly source: string;
  #fn: AnyFunction | undefined;

  /** @ignore */
  constructor(source: string) {
    this.source = source;
  }

  /**
   * The function. The first call evaluates the text.
   *
   * @throws {LeatError} `invalid_argument` where the engine refuses what the parser accepted, and
   * the host's own errors.
   *
   * @ignore
   */
  load(host: EvaluationHost): AnyFunction {
    return this.#fn ??= this.#evaluate(host);
  }

  /** The text, as `Function.prototype.toString` gives it. */
  toString(): string {
    return this.source;
  }

  #evaluate(host: EvaluationHost): AnyFunction {
    const script = functionScript(this.source);
    let fn: unknown;
    try {
      fn = host.evaluate === undefined ? evaluateScript(script) : host.evaluate(script);
    } catch (cause) {
      if (cause instanceof LeatError) throw cause;
      throw this.#refused(`the engine refuses it: ${LeatError.from(cause).message}`, cause);
    }
    if (typeof fn !== "function") throw this.#refused(`it is ${typeof fn}`);
    return fn as AnyFunction;
  }

  #refused(why: string, cause?: unknown): LeatError {
    return new LeatError(
      "invalid_argument",
      `This function cannot be evaluated here, ${why}: ${excerptOf(this.source)}`,
      { cause },
    );
  }
}

/**
 * Evaluates a script unchanged. Indirect `eval` parses exactly this text, by the grammar of
 * scripts, and sees only the global scope. `new Function` would add text around it, and a module
 * has another grammar.
 */
function evaluateScript(script: string): unknown {
  const indirect = globalThis.eval;
  return indirect(script);
}
