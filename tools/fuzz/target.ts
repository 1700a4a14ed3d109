/** A fuzz target: one kind of input, and the code that must read or refuse it. */
import type { SimRandom } from "../../sim/engine/random.ts";

/** A target that is ready to run. */
export interface OpenTarget {
  /** Valid inputs. Every mutant is derived from these. */
  readonly seeds: readonly [Uint8Array, ...Uint8Array[]];
  /** Creates a mutant. Default: `mutateBytes`. */
  mutate?(input: Uint8Array, random: SimRandom, seeds: readonly Uint8Array[]): Uint8Array;
  /**
   * Runs one input. If it returns, the input was valid. If it throws a `LeatError`, the input was
   * refused. Everything else is a failure: other errors, a promise that never settles, a process that
   * ends, too much memory or time.
   */
  run(input: Uint8Array): unknown;
  /** Releases what `open` allocated. */
  close?(): void | Promise<void>;
}

/** One kind of input. */
export interface Target {
  /** One line for `--help`. */
  readonly help: string;
  /**
   * Memory limit of the process, if the target needs more than the limit of all targets.
   */
  readonly memoryBytesMax?: number;
  open(): OpenTarget | Promise<OpenTarget>;
}

/** A module that exports targets by name. */
export interface TargetModule {
  readonly TARGETS: Readonly<Record<string, Target>>;
}
