/** References to functions of Python, which a process of the host calls. */
import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import type { PythonRunner } from "../host.ts";
import type { FunctionExtra } from "./call.ts";
import type { AnyFunction, Captures, LoadedFunction } from "./user_function.ts";

/** How many calls of a Python function `map` and `filter` have in flight by default. */
export const PYTHON_CALLS = 32;

/** A reference to a function of a Python file; made by {@linkcode python}. */
export class PythonFunction<F extends AnyFunction = AnyFunction> {
  /** Carries the signature as a type only. */
  declare readonly signature: F;
  /** A path, or a URL of a file, on each host that calls it. */
  readonly file: string;
  /** The name of the function in the file. */
  readonly name: string;

  /**
   * Does what {@linkcode python} does.
   *
   * @throws {LeatError} `invalid_argument` if `file` or `name` is empty or no text.
   */
  constructor(file: string, name: string) {
    if (typeof file !== "string" || file === "" || typeof name !== "string" || name === "") {
      throw new LeatError(
        "invalid_argument",
        `python() takes the path of a file and the name of a function in it, not ` +
          `${JSON.stringify(file)} and ${JSON.stringify(name)}`,
      );
    }
    this.file = file;
    this.name = name;
  }
}

/**
 * Refers to a function of a Python file, for `map` and other operators. Processes of Python call it,
 * at a time one for each core of the host that runs the operator. They need the package `leat` and the
 * permission `--allow-run=python3`. A confined worker calls only functions in folders that it was
 * granted with `--allow-python`. `docs/python.md` says more.
 *
 * The function gets the element: tensors as numpy arrays. It gets captures as keyword arguments, and
 * a `numpy.random.Generator` if it has a parameter `rng`.
 *
 * @param file Its path, or a `file:` URL, on every host of the pipeline. A relative path starts at
 * the current folder of the program that calls it, as for files of data.
 * @param name The function's name.
 * @throws {LeatError} `invalid_argument` for an empty file or name.
 *
 * @example
 * ```ts
 * import { Dataset, python } from "../../mod.ts";
 * const augmented = Dataset.range(4).map(python("augment.py", "augment"));
 * ```
 */
// deno-lint-ignore no-explicit-any -- what it takes and returns is known to Python alone
export function python(file: string, name: string): PythonFunction<any>;
/** Refers to a function, as above, whose signature the caller asserts. Nothing checks it. */
export function python<F extends AnyFunction>(file: string, name: string): PythonFunction<F>;
export function python(file: string, name: string): PythonFunction {
  return new PythonFunction(file, name);
}

/** A function that lets the host call a Python function. `permission_denied` if the host runs no Python. */
export function callsPython<F extends AnyFunction>(
  { file, name }: PythonFunction<F>,
  captures: Captures | undefined,
  runner: PythonRunner | undefined,
): LoadedFunction<F> {
  if (runner === undefined) {
    throw new LeatError(
      "permission_denied",
      `The Python function "${name}" of ${shownPath(file)} is not called here: simulated ` +
        "pipelines, and parts of a pipeline " +
        "that another program built, run no Python. Run it in the program that built it, or on a worker that was " +
        "started with --allow-python FOLDER",
    );
  }
  const callee = { file, name, ...(captures === undefined ? {} : { captures }) };
  const fn = (...given: unknown[]) => {
    const { random } = given.pop() as FunctionExtra;
    return runner.call(callee, given, random.int(Number.MAX_SAFE_INTEGER));
  };
  return { fn: fn as F };
}
