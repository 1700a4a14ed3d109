/**
 * Mutants are deliberately wrong versions of parts of the service. A checker that never fails proves
 * little, so a checker must notice each mutant.
 *
 * A mutant is not in production code. It replaces a public method of a class, or changes messages,
 * during one run.
 */
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { type Role, ROLES } from "../faults/crashes.ts";
import { LinkEnd } from "../engine/link.ts";
import type { FaultOptions } from "../faults/options.ts";
import { type RunOptions, type RunOutcome, WORKLOAD_FAULTS } from "../workloads/workload.ts";
import { WORKLOADS } from "../workloads/workloads.ts";

/** A deliberately wrong part. */
export interface Mutant {
  /** Its name on the command line: words with hyphens. */
  readonly name: string;
  /** What is wrong, as a noun phrase: "a dispatcher that …". */
  readonly wrong: string;
  /** The workload that must notice it. */
  readonly workload: string;
  /** The roles that crash in its runs. Default: a node of each role. */
  readonly crashes?: readonly Role[];
  /** Faults in addition to {@linkcode WORKLOAD_FAULTS}. */
  readonly faults?: Partial<FaultOptions>;
  /** A seed that notices it, or a seed shortly before. Default 1. */
  readonly seed?: number;
  /**
   * Whether only runs that never finish reveal it. These take long, so tests leave them to `deno task
   * vopr --mutants`. Default false.
   */
  readonly isSlow?: boolean;
  /** Installs the mutant for one run. Disposing of the result removes it. */
  readonly install: () => Disposable;
}

export function mutantOptions({ crashes = ROLES, faults }: Mutant, seed: bigint): RunOptions {
  return { seed, crashes, faults: { ...WORKLOAD_FAULTS, ...faults } };
}

/** Runs a workload with a mutant. Only one may run per thread, because it affects the whole thread. */
export async function runMutant(
  { install }: Mutant,
  workload: string,
  options: RunOptions,
): Promise<RunOutcome> {
  using _ = install();
  return await WORKLOADS[workload]!(options);
}

/**
 * Replaces methods of a class everywhere. Disposing of the result restores them. If `change` is a
 * function, it receives the original methods.
 */
export function changed<T extends object>(
  prototype: T,
  change: (Partial<T> & ThisType<T>) | ((before: T) => Partial<T> & ThisType<T>),
): Disposable {
  const methods = typeof change === "function" ? change(prototype) : change;
  const before = Object.keys(methods).map((name) =>
    [name, Object.getOwnPropertyDescriptor(prototype, name)!] as const
  );
  Object.assign(prototype, methods);
  return {
    [Symbol.dispose]() {
      for (const [name, method] of before) Object.defineProperty(prototype, name, method);
    },
  };
}

/** Changes or drops a message, as a wrong actor would send it. */
type Tamper = (envelope: Envelope) => Envelope | undefined;

/** Changes or drops messages between nodes. */
export function tampered(tamper: Tamper): Disposable {
  return changed(LinkEnd.prototype, ({ send }) => ({
    send(envelope) {
      const altered = tamper(envelope);
      return altered === undefined || send.call(this, altered);
    },
  }));
}

/** Changes requests. */
export function asksChanged<B>(method: string, change: (body: B) => unknown): Disposable {
  return tampered((envelope: Envelope) =>
    envelope.kind === "ask" && envelope.method === method
      ? { ...envelope, body: change(envelope.body as B) }
      : envelope
  );
}

/** Changes the answers that `isSelected` selects. */
export function repliesChanged<B extends object>(
  isSelected: (body: Partial<B>) => boolean,
  change: (body: B, envelope: Envelope) => unknown,
): Disposable {
  return tampered((envelope) => {
    if (envelope.kind !== "reply") return envelope;
    const { body } = envelope;
    if (typeof body !== "object" || body === null || !isSelected(body as Partial<B>)) {
      return envelope;
    }
    return { ...envelope, body: change(body as B, envelope) };
  });
}

/** An additional value for each instance of a class. */
export class PerInstance<K extends object, V> {
  readonly #values = new WeakMap<K, V>();
  readonly #make: () => V;

  constructor(make: () => V) {
    this.#make = make;
  }

  of(instance: K): V {
    return this.#values.getOrInsertComputed(instance, this.#make);
  }
}
