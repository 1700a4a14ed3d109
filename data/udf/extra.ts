/** The last argument of user functions. */
import { tensor } from "../../core/tensor.ts";
import type { TensorOperations } from "../../core/tensor_operations.ts";
import type { RandomStream } from "../../core/philox.ts";
import { example } from "../formats/tfrecord/example.ts";
import type { AudioCodec, Host } from "../host.ts";
import type { ImageTools } from "../media/image.ts";
import { facade } from "../node.ts";
import type { Call, FunctionExtra } from "./call.ts";
import { mayUse, TOOLBOX_NAMES } from "./captured_names.ts";
import type { Captures, LoadedFunction } from "./user_function.ts";

/** Loaded before the first call of a function that may use it. */
let toolbox: typeof import("./toolbox.ts") | undefined;

/** The last argument of the calls of one function. */
export class Extra implements FunctionExtra {
  declare readonly Dataset: unknown;
  readonly tensor = tensor;
  readonly example = example;
  declare readonly image: ImageTools;
  declare readonly tensors: TensorOperations;
  readonly audio: AudioCodec;
  readonly #call: Call;
  /**
   * The number of the call if calls overlap. Undefined otherwise: `#call` has the current number.
   */
  readonly #index: number | undefined;
  #random: RandomStream | undefined;
  #randomIndex = -1;

  constructor(call: Call, host: Host, captures: Captures | undefined, index?: number) {
    this.#call = call;
    if (toolbox !== undefined) {
      this.image = toolbox.imageTools(host.images, call.rows);
      this.tensors = toolbox.tensors;
    }
    this.audio = host.audio;
    this.#index = index;
    if (captures !== undefined) Object.assign(this, captures);
  }

  get index(): number {
    return this.#index ?? this.#call.index - 1;
  }

  get random(): RandomStream {
    const { index } = this;
    if (this.#random === undefined || this.#randomIndex !== index) {
      this.#randomIndex = index;
      this.#random = this.#call.randomStateOf(index);
    }
    return this.#random;
  }
}

// A getter, because `Dataset` is not defined yet when this module is loaded.
Object.defineProperty(Extra.prototype, "Dataset", { get: () => facade().Dataset });

/** How many arguments a function takes before the last. */
export type Arity = 0 | 1 | 2;

/** Loads the toolbox first if the function may use it. */
export function withToolbox(
  loaded: LoadedFunction,
  arity: Arity,
): LoadedFunction | Promise<LoadedFunction> {
  const source = Function.prototype.toString.call(loaded.fn);
  if (toolbox !== undefined || !mayUse(TOOLBOX_NAMES, source, arity)) return loaded;
  return import("./toolbox.ts").then((code) => {
    toolbox = code;
    return loaded;
  });
}
