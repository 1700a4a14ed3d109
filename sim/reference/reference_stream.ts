/**
 * Computes the stream of a DETERMINISTIC dataset by its definition: the canonical streams of its chains,
 * and the other operators over them in this process.
 */
import { LeatError } from "../../core/error.ts";
import { RandomStream } from "../../core/philox.ts";
import { Tensor } from "../../core/tensor.ts";
import type { IteratorContext } from "../../data/context.ts";
import { Dataset } from "../../data/dataset.ts";
import { openIterator } from "../../data/dataset_iterator.ts";
import type { Host } from "../../data/host.ts";
import { ElementIterator, END, type Pulled } from "../../data/iterator.ts";
import { type Attributes, type DatasetNode, UNKNOWN_CARDINALITY } from "../../data/node.ts";
import { UnaryNode } from "../../data/operators/unary.ts";
import { distributeChains } from "../../data/deterministic/chain.ts";
import type { ElementSpec } from "../../data/elements/spec.ts";
import { canonicalStream, type Given } from "./canonical_stream.ts";
import { SimCluster } from "../engine/cluster.ts";

/** Time limit of a reference run, in ms of virtual time. */
const TIME_MAX_MS = 10_000;

/** Computes the stream of some epochs of a dataset as texts, on a node without faults. */
export async function referenceStream(
  make: () => Dataset<unknown>,
  epochs: number,
): Promise<string[]> {
  const texts: string[] = [];
  await referenceRun(make, epochs, (given) => void texts.push(textOf(given)));
  return texts;
}

/** Passes the whole stream to `onGiven`. @throws LeatError if the dataset cannot be read. */
export async function referenceRun(
  make: () => Dataset<unknown>,
  epochs: number,
  onGiven: (given: Given) => void,
): Promise<void> {
  const cluster = new SimCluster({ seed: 0n });
  let done = false;
  let failure: unknown;
  cluster.addNode("reference", ({ host, system }) => {
    const work = async () => {
      const reference = new Dataset(new ReferenceNode(make(), host)).repeat(epochs);
      const iterator = openIterator(reference.node, { host });
      for (;;) {
        try {
          const { done, value } = await iterator.next();
          if (done) return;
          onGiven({ element: value });
        } catch (error) {
          onGiven({ error });
        }
      }
    };
    work().catch((error) => failure = error).finally(() => {
      done = true;
      system.stop();
    });
  });
  // Time passes only if an event is scheduled.
  cluster.after(1_000, "reference", () => {});
  await cluster.run({ until: () => done, timeMaxMs: TIME_MAX_MS });
  if (failure !== undefined) throw failure;
}

/** Returns a text that identifies a result. */
export function textOf(given: Given): string {
  if (!("error" in given)) return JSON.stringify(given.element, asPlain);
  const { code, message } = LeatError.from(given.error);
  return `${code}: ${message}`;
}

function asPlain(_key: string, value: unknown): unknown {
  if (!(value instanceof Tensor)) return value;
  return { dtype: value.dtype, shape: value.shape, data: value.toArray() };
}

/** Replaces `distribute()`: reads the canonical streams of its chains. */
class ReferenceNode extends UnaryNode {
  override readonly division = "whole";
  override readonly attributes: Attributes = {};
  readonly #host: Host;
  /** What the reader runs: all epochs share its caches. */
  #root: DatasetNode | undefined;

  constructor(dataset: Dataset<unknown>, host: Host) {
    super("distribute", dataset.node);
    this.#host = host;
  }

  override get elementSpec(): ElementSpec {
    return this.input.elementSpec;
  }

  override get cardinality(): number {
    return UNKNOWN_CARDINALITY;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    const root = this.#root ??= distributeChains(
      this.input,
      (chain) => new CanonicalNode(new Dataset(chain), this.#host),
    );
    if (root instanceof CanonicalNode) return root.makeIterator(context);
    const number = context.stats.number + 1;
    return context.instead(root, new RandomStream(0n), number).makeIterator();
  }
}

/** Replaces a chain: reads its canonical stream for the current epoch. */
class CanonicalNode extends ReferenceNode {
  override readonly isNumbered = false;
  readonly #open: (epoch: number) => Promise<Given[]>;

  constructor(chain: Dataset<unknown>, host: Host) {
    super(chain, host);
    this.#open = (epoch) => canonicalStream(chain, { epoch, host });
  }

  override makeIterator({ randomState: { epoch } }: IteratorContext): ElementIterator {
    return new CanonicalIterator(() => this.#open(epoch));
  }
}

class CanonicalIterator extends ElementIterator {
  readonly #open: () => Promise<Given[]>;
  #stream: Given[] | undefined;

  constructor(open: () => Promise<Given[]>) {
    super();
    this.#open = open;
  }

  override next(): Pulled<unknown> {
    return this.#next();
  }

  protected override saveState(): Promise<unknown> {
    return Promise.reject(new LeatError("unimplemented", "A reference is not saved"));
  }

  protected override restoreState(): Promise<void> {
    return this.saveState() as Promise<never>;
  }

  protected override release(): void {}

  async #next(): Promise<unknown> {
    this.#stream ??= await this.#open();
    const given = this.#stream.shift();
    if (given === undefined) return END;
    if ("error" in given) throw given.error;
    return given.element;
  }
}
