/**
 * Mutants: deliberately wrong versions of parts of the service. A checker that never sees one proves
 * little, so each mutant has to be noticed.
 *
 * A mutant is not in production code. It changes a public method of a class for as long as a run
 * takes, or what is said on its way.
 *
 * @module
 */
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { type Role, ROLES } from "../crashes.ts";
import { LinkEnd } from "../link.ts";
import type { FaultOptions } from "../options.ts";
import { type RunOptions, type RunOutcome, WORKLOAD_FAULTS } from "../workload.ts";
import { WORKLOADS } from "../workloads.ts";

/** See the module. */
export interface Mutant {
  /** On a command line: words with hyphens. */
  readonly name: string;
  /** What it does wrong, as the subject of a sentence: "a dispatcher that …". */
  readonly wrong: string;
  /** Whoever runs this has to notice. */
  readonly workload: string;
  /** What crashes in its runs. Default: a node of each role. */
  readonly crashes?: readonly Role[];
  /** What goes wrong beyond {@linkcode WORKLOAD_FAULTS}. */
  readonly faults?: Partial<FaultOptions>;
  /** A seed at which it is noticed, or not long after it. Default 1. */
  readonly seed?: number;
  /**
   * It shows only in runs that never get done, which take long: tests leave it to
   * `deno task vopr --mutants`. Default false.
   */
  readonly isSlow?: boolean;
  /** Makes the part wrong, for one run; disposing of the answer mends it. */
  readonly install: () => Disposable;
}

/** How a mutant is run. */
export function mutantOptions({ crashes = ROLES, faults }: Mutant, seed: bigint): RunOptions {
  return { seed, crashes, faults: { ...WORKLOAD_FAULTS, ...faults } };
}

/** Runs a workload with a mutant in it. One at a time in a thread: it is wrong for everybody there. */
export async function runMutant(
  { install }: Mutant,
  workload: string,
  options: RunOptions,
): Promise<RunOutcome> {
  using _ = install();
  return await WORKLOADS[workload]!(options);
}

/** Changes methods of a class for everybody; disposing of the answer undoes it. */
export function changed<T extends object>(
  prototype: T,
  methods: Partial<T> & ThisType<T>,
): Disposable {
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

/** Changes what is sent, or drops it: what a wrong actor would say can be said so. */
export type Tamper = (envelope: Envelope) => Envelope | undefined;

/** Changes or drops what nodes say to each other. */
export function tampered(tamper: Tamper): Disposable {
  const { send } = LinkEnd.prototype;
  return changed(LinkEnd.prototype, {
    send(envelope) {
      const said = tamper(envelope);
      return said === undefined || send.call(this, said);
    },
  });
}

/** Changes what is asked. */
export function asksChanged<B>(method: string, change: (body: B) => unknown): Disposable {
  return tampered((envelope: Envelope) =>
    envelope.kind === "ask" && envelope.method === method
      ? { ...envelope, body: change(envelope.body as B) }
      : envelope
  );
}

/** Changes what is answered, where the answer is one that `isMeant`. */
export function repliesChanged<B extends object>(
  isMeant: (body: Partial<B>) => boolean,
  change: (body: B, envelope: Envelope) => unknown,
): Disposable {
  return tampered((envelope) => {
    if (envelope.kind !== "reply") return envelope;
    const { body } = envelope;
    if (typeof body !== "object" || body === null || !isMeant(body as Partial<B>)) return envelope;
    return { ...envelope, body: change(body as B, envelope) };
  });
}

/** Something more that each instance of a class remembers. */
export class PerInstance<K extends object, V> {
  readonly #values = new WeakMap<K, V>();
  readonly #make: () => V;

  constructor(make: () => V) {
    this.#make = make;
  }

  of(instance: K): V {
    if (!this.#values.has(instance)) this.#values.set(instance, this.#make());
    return this.#values.get(instance)!;
  }
}
