/**
 * Reading a distributed dataset on a simulated node as programs do: through `distribute()`.
 *
 * @module
 */
import { accessFrom } from "../actors/client/access.ts";
import { distributedIterator } from "../actors/client/distributed_iterator.ts";
import type { ClientHome } from "../actors/client/starting.ts";
import { dispatcherAt, READ_BY_ANOTHER } from "../actors/dispatcher/protocol.ts";
import { LeatError } from "../core/error.ts";
import { type Dataset, iterateOn } from "../data/dataset.ts";
import type { DatasetIterator } from "../data/dataset_iterator.ts";
import { registerServed } from "../data/node.ts";
import type { DistributeNode } from "../data/operators/distribute.ts";
import { openHome, registerHome } from "../world/client_homes.ts";
import type { Given } from "./canonical_stream.ts";
import type { Findings } from "./checkers/checker.ts";
import type { SimNode } from "./node.ts";
import type { SimRandom } from "./random.ts";
import { DISPATCHER_NODE } from "./service.ts";

// What mod.ts does for programs: a simulation does without the rest of it.
registerServed((node, context) => {
  const { inputs: [input], options } = node as DistributeNode;
  return distributedIterator(input!, options, context, accessFrom(openHome));
});

let services = 0;

/** Timings of clients; by default those of production. */
export type Timings = NonNullable<ClientHome["timings"]>;

/** A dataset of a program on a simulated node: opens its next iterator. */
export type NextIterator<T> = () => DatasetIterator<T>;

/** Opens iterators on simulated nodes. */
export class Readings implements Disposable {
  readonly #homes: (() => void)[] = [];

  /** @param make makes what is read, of the address of the service. */
  dataset<T>(
    { system, host }: SimNode,
    make: (service: string) => Dataset<T>,
    timings: Timings = {},
  ): NextIterator<T> {
    const service = `simulated-${++services}`;
    const home: ClientHome = {
      system,
      dispatcher: dispatcherAt(DISPATCHER_NODE),
      timings,
      release: () => {},
    };
    this.#homes.push(registerHome(service, () => home));
    const dataset = make(service);
    return () => iterateOn(dataset, host);
  }

  /** The first iterator of a dataset. */
  open<T>(
    node: SimNode,
    make: (service: string) => Dataset<T>,
    timings?: Timings,
  ): DatasetIterator<T> {
    return this.dataset(node, make, timings)();
  }

  [Symbol.dispose](): void {
    for (const forget of this.#homes) forget();
  }
}

/**
 * What comes next; `undefined` at the end, "lost" where the dispatcher knows this reader no more.
 *
 * @param isRestored Whether it takes over from whoever reads.
 * @throws where it was restored, and is refused because another one reads.
 */
export async function take(
  iterator: DatasetIterator<unknown>,
  isRestored = false,
): Promise<Given | undefined | "lost"> {
  try {
    const { done, value } = await iterator.next();
    return done ? undefined : { element: value };
  } catch (error) {
    const { code, details } = LeatError.from(error);
    if (isRestored && details?.reason === READ_BY_ANOTHER) throw error;
    return code === "not_found" || code === "failed_precondition" ? "lost" : { error };
  }
}

/**
 * A training loop that reads to the end.
 *
 * @param step Takes an element, and a step with it.
 * @throws what reading fails with.
 */
export async function takeAll(
  iterator: DatasetIterator<unknown>,
  step: (element: unknown) => Promise<void>,
): Promise<void> {
  for (;;) {
    const { done, value } = await iterator.next();
    if (done) return;
    await step(value);
  }
}

/** The training programs of a run: which of them have come to their end, and that none fails. */
export class Trainings {
  readonly #findings: Findings;
  readonly #ended = new Set<string>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Whether these have come to their end in the life in which their nodes are. */
  haveEnded(names: readonly string[]): boolean {
    return names.every((name) => this.#ended.has(name));
  }

  /** A node was crashed: it has everything before it again. */
  crashed({ name }: SimNode): void {
    this.#ended.delete(name);
  }

  /** Begins a program on a node; to be called at each of its starts. */
  begin(node: SimNode, program: (who: string, luck: SimRandom) => Promise<void>): void {
    const who = `${node.name} (life ${node.lives})`;
    program(who, node.world.random.fork("training")).catch((error) => {
      this.#findings.add(`${who} failed: ${LeatError.from(error).message}`);
    }).finally(() => this.#ended.add(node.name));
  }
}
