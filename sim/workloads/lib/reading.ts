/** Reads a distributed dataset on a simulated node as programs do, through `distribute()`. */
import { accessFrom } from "../../../actors/client/access.ts";
import { distributedIterator } from "../../../actors/client/distributed_iterator.ts";
import type { ClientHome } from "../../../actors/client/starting.ts";
import { dispatcherAt, READ_BY_ANOTHER } from "../../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../../core/error.ts";
import type { Dataset } from "../../../data/dataset.ts";
import { withHost } from "../../../data/host.ts";
import type { DatasetIterator } from "../../../data/dataset_iterator.ts";
import { registerServed } from "../../../data/node.ts";
import { OffloadNode } from "../../../data/operators/offload.ts";
import { offloadedIterator } from "../../../offload/offloaded_iterator.ts";
import { openHome, registerHome } from "../../../platform/nodes/client_homes.ts";
import { failedElement } from "../../checkers/failing_elements.ts";
import type { Given } from "../../reference/canonical_stream.ts";
import type { Findings } from "../../checkers/checker.ts";
import type { SimNode } from "../../engine/node.ts";
import type { SimRandom } from "../../engine/random.ts";
import { DISPATCHER_NODE } from "../../engine/service.ts";

// `mod.ts` does this for programs. A simulation needs nothing else of it.
registerServed((node, context) => {
  if (node instanceof OffloadNode) return offloadedIterator(node, context, accessFrom(openHome));
  return distributedIterator(node, context, accessFrom(openHome));
});

let services = 0;

/** Timings of clients; default: those of production. */
export type Timings = NonNullable<ClientHome["timings"]>;

/** Opens the next iterator of a program's dataset on a simulated node. */
export type NextIterator<T> = () => DatasetIterator<T>;

/** Opens iterators on simulated nodes. */
export class Readings implements Disposable {
  /** Functions that unregister the homes. */
  readonly #homes: (() => void)[] = [];

  /** @param make Makes the dataset from the address of the service. */
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
    return () => withHost(host, () => dataset.iterator());
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
    for (const unregister of this.#homes) unregister();
  }
}

/**
 * Takes the next element; `undefined` at the end, "lost" if the dispatcher does not know this reader any
 * more.
 * @param reader.isRestored Whether it was restored, and no other reader can be restored after it.
 * @param reader.isOnly Whether no other reader can take its place, and the dispatcher cannot take it for
 *   lost.
 * @throws the refusal of the only reader, or of a restored one because of another reader.
 */
export async function take(
  iterator: DatasetIterator<unknown>,
  { isRestored = false, isOnly = () => false }: {
    readonly isRestored?: boolean;
    readonly isOnly?: () => boolean;
  } = {},
): Promise<Given | undefined | "lost"> {
  try {
    const { done, value } = await iterator.next();
    return done ? undefined : { element: value };
  } catch (error) {
    const { code, details } = LeatError.from(error);
    if (code !== "not_found" && code !== "failed_precondition") return { error };
    if (isOnly() || isRestored && details?.reason === READ_BY_ANOTHER) throw error;
    return "lost";
  }
}

/** Takes the next element, or one that failed on purpose. */
export async function nextOrFailed<T>(
  iterator: DatasetIterator<T>,
): Promise<
  { readonly done?: false; readonly value: T } | { readonly done: true; readonly value: undefined }
> {
  try {
    const { done, value } = await iterator.next();
    return done ? { done, value: undefined } : { value };
  } catch (error) {
    return { value: failedElement(error) as T };
  }
}

/**
 * Reads to the end, as a training loop does.
 * @param step Takes an element and performs a step.
 * @throws the failure of reading.
 */
export async function takeAll(
  iterator: DatasetIterator<unknown>,
  step: (element: unknown) => Promise<void>,
): Promise<void> {
  for (;;) {
    const { done, value } = await nextOrFailed(iterator);
    if (done) return;
    await step(value);
  }
}

/** The training programs of a run. Tracks which have ended, and reports those that fail. */
export class Trainings {
  readonly #findings: Findings;
  readonly #ended = new Set<string>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Whether the programs of these nodes have ended in the nodes' current lives. */
  haveEnded(names: readonly string[]): boolean {
    return names.every((name) => this.#ended.has(name));
  }

  /** Records that a node crashed, so that it has to start its program again. */
  crashed({ name }: SimNode): void {
    this.#ended.delete(name);
  }

  /** Starts a program on a node. It must be called at each start of the node. */
  begin(node: SimNode, program: (who: string, rng: SimRandom) => Promise<void>): void {
    const who = `${node.name} (life ${node.lives})`;
    program(who, node.world.random.fork("training")).catch((error) => {
      this.#findings.add(`${who} failed: ${LeatError.from(error).message}`);
    }).finally(() => this.#ended.add(node.name));
  }
}
