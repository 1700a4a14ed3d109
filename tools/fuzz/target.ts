/**
 * What is fuzzed: one kind of input, and the code that has to bear any of it.
 *
 * @module
 */
import type { SimRandom } from "../../sim/engine/random.ts";

/** A target that is ready to run. */
export interface OpenTarget {
  /** Valid inputs. Every mutant is made of these. */
  readonly seeds: readonly [Uint8Array, ...Uint8Array[]];
  /** Makes a mutant. Default: `mutateBytes`. */
  mutate?(input: Uint8Array, random: SimRandom, seeds: readonly Uint8Array[]): Uint8Array;
  /**
   * Runs one input. Returning says that it was valid, throwing a `LeatError` that it was refused. Everything else is a failure: other
   * errors, a promise that never settles, a process that ends, too much memory or time.
   */
  run(input: Uint8Array): unknown;
  /** Lets go of what `open` took. */
  close?(): void | Promise<void>;
}

/** One kind of input. */
export interface Target {
  /** One line for `--help`. */
  readonly help: string;
  /** What its readers may take where they are told to: they have a limit of their own. Default: what all targets may take. */
  readonly memoryBytesMax?: number;
  open(): OpenTarget | Promise<OpenTarget>;
}

/** A module that exports targets by name. */
export interface TargetModule {
  readonly TARGETS: Readonly<Record<string, Target>>;
}
