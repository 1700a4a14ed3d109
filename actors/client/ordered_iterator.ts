/**
 * The iterator behind `dataset.distribute({ processingMode: "DETERMINISTIC" })`: takes the stream in
 * its order, joins what splits have left over, and knows its place by a few numbers.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { RandomStream } from "../../core/philox.ts";
import type { IteratorContext } from "../../data/context.ts";
import { ElementIterator, END, type Pulled } from "../../data/iterator.ts";
import type { DatasetNode } from "../../data/node.ts";
import { DistributeNode, type DistributeOptions } from "../../data/operators/distribute.ts";
import { seedOf } from "../../data/operators/options.ts";
import { chainOf, distributeChains, type OrderedChain } from "../../data/ordered/chain.ts";
import { type CarriedRows, type Joined, RemainderJoin } from "../../data/ordered/join.ts";
import type { Payload } from "../../transport/payload.ts";
import type { Place } from "../worker/protocol.ts";
import type { ClientOptions } from "./client.ts";
import { type Fed, Feed } from "./feed.ts";
import type { ServiceAccess } from "./access.ts";
import { clientOptions, definitionOf } from "./starting.ts";

/**
 * The iterator of what `input` gives under DETERMINISTIC. What of it is no chain of splits is done
 * here, over what the service gives.
 */
export function orderedIterator(
  input: DatasetNode,
  options: DistributeOptions,
  context: IteratorContext,
  access: ServiceAccess,
): ElementIterator {
  const { jobName } = options;
  const root = distributeChains(input, (chain, number) =>
    new DistributeNode(chain, {
      ...options,
      ...(jobName === undefined || chain === input ? {} : { jobName: `${jobName}/${number}` }),
    }));
  const seed = seedOf(input) ?? 0n;
  if (!(root instanceof DistributeNode) || root.options.processingMode !== options.processingMode) {
    return context.instead(root, new RandomStream(seed)).makeIterator();
  }
  const node = root.inputs[0]!;
  const chain = chainOf(node)!;
  const base = clientOptions(definitionOf(node, options.compression), options, context.luck.epoch);
  return new OrderedIterator({
    context,
    chain,
    seed,
    start: (ordered, feed) =>
      access.read(options.service, options, {
        ...base,
        parameters: {
          ...base.parameters,
          ordered: { seed: hex64(seed), shuffled: chain.shuffled },
        },
        ordered,
      }, feed),
  });
}

function hex64(seed: bigint): string {
  return BigInt.asUintN(64, seed).toString(16).padStart(16, "0");
}

/** Where the stream goes on: all that is saved of it. */
interface Position {
  /** The split that is next, by its place in their order. */
  readonly sequence: number;
  /** How much was given of it. */
  readonly given: number;
  /** Rows of splits before it that wait for others to fill a batch. */
  readonly carried: readonly CarriedRows[];
  /** The table of splits; null before it was heard of. */
  readonly digest: string | null;
  readonly ended: boolean;
}

interface OrderedIteratorOptions {
  readonly context: IteratorContext;
  readonly chain: OrderedChain;
  readonly seed: bigint;
  readonly start: (ordered: NonNullable<ClientOptions["ordered"]>, feed: Feed) => () => void;
}

class OrderedIterator extends ElementIterator {
  readonly #options: OrderedIteratorOptions;
  readonly #feed = new Feed();
  readonly #join: RemainderJoin;
  #position: Position = { sequence: 0, given: 0, carried: [], digest: null, ended: false };
  /** Where it was restored: what comes before was given by another iterator. */
  #restored: Position | undefined;
  #stop: (() => void) | undefined;
  /** Reading cannot go on, and that was told. Another iterator may go on from the position. */
  #failed = false;

  constructor(options: OrderedIteratorOptions) {
    super();
    this.#options = options;
    const { context, chain, seed } = options;
    this.#join = new RemainderJoin(chain, { host: context.host, seed, epoch: context.luck.epoch });
  }

  override next(): Pulled<unknown> {
    if (this.disposed || this.#failed || this.#position.ended) return END;
    this.#stop ??= this.#begin();
    return this.#pull();
  }

  protected override saveState(): Promise<Position> {
    return Promise.resolve(this.#position);
  }

  protected override restoreState(state: unknown): Promise<void> {
    this.#restored = this.#position = state as Position;
    return Promise.resolve();
  }

  protected override release(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  #begin(): () => void {
    const restored = this.#restored;
    const onTable = (digest: string) => this.#position = { ...this.#position, digest };
    if (restored === undefined) return this.#options.start({ onTable }, this.#feed);
    // Of splits before it only those are produced once more whose rows wait for a batch.
    const { sequence: startAt, carried } = restored;
    const behind = carried.map(({ sequence }) => sequence);
    const expected = restored.digest === null ? {} : { expectedDigest: restored.digest };
    return this.#options.start({ startAt, behind, onTable, ...expected }, this.#feed);
  }

  async #pull(): Promise<unknown> {
    for (;;) {
      let fed: Fed;
      try {
        fed = await this.#options.context.waitFor(Promise.resolve(this.#feed.take()));
      } catch (error) {
        if (this.disposed) return END;
        this.#failed = true;
        this.release();
        throw error;
      }
      if (this.disposed) return END;
      if ("element" in fed) this.#options.context.stats.received(fed.element.bytes.byteLength);
      const given = fed.kind === "end" ? await this.#end() : await this.#take(fed);
      if (given === undefined) continue;
      if (given === END) return END;
      const { stats } = this.#options.context;
      if ("error" in given) throw stats.failed(given.error);
      return stats.gave(given.element);
    }
  }

  /** What follows from one thing that came; `undefined` where nothing does. */
  async #take(fed: Exclude<Fed, { kind: "end" }>): Promise<Joined | undefined> {
    const place = fed.place;
    if (place === undefined) {
      // What has no place is about the whole: reading cannot go on.
      return fed.kind === "error" ? { error: LeatError.fromWire(fed.error) } : undefined;
    }
    if (fed.kind === "remainder") return await this.#joinRows(place, fed.element);
    if (fed.kind === "split_end") {
      this.#moveTo(place.sequence + 1);
      return undefined;
    }
    if (this.#isKnown(place)) return undefined;
    this.#position = { ...this.#position, sequence: place.sequence, given: place.index + 1 };
    return fed.kind === "error"
      ? { error: LeatError.fromWire(fed.error) }
      : { element: this.#feed.decode(fed.element) };
  }

  /** Whether the iterator that this one goes on from has given it. */
  #isKnown({ sequence, index }: Place): boolean {
    const restored = this.#restored;
    if (restored === undefined || sequence > restored.sequence) return false;
    return sequence < restored.sequence || index < restored.given;
  }

  async #joinRows({ sequence, split }: Place, rows: Payload): Promise<Joined | undefined> {
    const restored = this.#restored;
    if (restored !== undefined && sequence < restored.sequence) {
      const carried = restored.carried.find((at) => at.sequence === sequence);
      if (carried !== undefined) {
        await this.#join.add(sequence, split, this.#feed.decode(rows), carried.rows);
      }
      return undefined;
    }
    const joined = await this.#join.add(sequence, split, this.#feed.decode(rows));
    // The batch that a split completes is the last of it.
    if (joined !== undefined) this.#moveTo(sequence + 1);
    return joined;
  }

  #moveTo(sequence: number): void {
    if (sequence <= this.#position.sequence) return;
    this.#position = { ...this.#position, sequence, given: 0, carried: this.#join.carried };
  }

  async #end(): Promise<Joined | typeof END> {
    const last = await this.#join.end();
    this.#position = { ...this.#position, ended: true };
    this.release();
    return last ?? END;
  }
}
