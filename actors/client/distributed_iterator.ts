/** The iterator behind `dataset.distribute(…)`: starts a client actor and takes from its feed. */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../../data/context.ts";
import { refuseForeignService } from "../../data/foreign/foreign.ts";
import { ElementIterator, END, type Pulled } from "../../data/iterator.ts";
import { type DatasetNode, registerServed } from "../../data/node.ts";
import {
  DistributeNode,
  type DistributeOptions,
  partsWarning,
  shardingModeOf,
} from "../../data/operators/distribute.ts";
import { mayDraw, seedOf, withSeed } from "../../data/operators/options.ts";
import { FromIdNode } from "../../data/operators/sources/from_id.ts";
import { type ShardingMode, ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import { ReadingFailure } from "../../data/iterators/reading_failure.ts";
import type { ClientOptions } from "./client.ts";
import { Feed, type FeedItem } from "./feed.ts";
import { orderedIterator, StreamNode } from "./ordered_streams.ts";
import type { ServiceAccess } from "./access.ts";
import { clientOptions, datasetDefinition } from "./starting.ts";
import { LazyIterator } from "../../data/iterators/lazy_iterator.ts";
import { checkReproducible } from "../../data/deterministic/reproducible.ts";
import { checkReadsNoService } from "../../data/sharding/splits.ts";
import { deserializeGraph } from "../../data/wire.ts";

/** Registers the iterators of datasets that a service produces. */
export function provideIterators(access: ServiceAccess): void {
  registerServed((node, context) => serviceIterator(node, context, access));
}

/** Makes the iterator of a dataset that a service produces. */
export function serviceIterator(
  node: DatasetNode,
  context: IteratorContext,
  access: ServiceAccess,
): ElementIterator {
  refuseForeignService(node, context.host);
  if (node instanceof FromIdNode) return registeredIterator(node, context, access);
  if (!(node instanceof DistributeNode)) return distributedIterator(node, context, access);
  const [input] = node.inputs;
  const seeded = mayDraw(node) ? withSeed(input!, context.chosenSeedOf(input!)) : input!;
  // Later epochs would only repeat the warning.
  const warning = context.randomState.epoch === 0 ? partsWarning(node) : undefined;
  return distributedIterator(node, context, access, seeded, warning);
}

/** @param input That of `node`, which may have been given a seed. */
export function distributedIterator(
  node: DatasetNode,
  context: IteratorContext,
  access: ServiceAccess,
  input: DatasetNode = node.inputs[0]!,
  warning?: string,
): ElementIterator {
  if (node instanceof StreamNode) return node.iterator(context, access, { ownOnly: false });
  if (!(node instanceof DistributeNode)) {
    throw new LeatError("internal", `No service produces ${node.kind}`);
  }
  const { options, shared: graphs } = node;
  if (options.processingMode === ShardingPolicy.DETERMINISTIC) {
    const key = String(seedOf(input));
    // An operator that only gives the seed is not the user's, and has no number.
    const number = context.stats.number + (input === node.inputs[0] ? 1 : 0);
    return orderedIterator({ input, options, graphs, key, number }, context, access);
  }
  return unorderedIterator(
    () => {
      if (warning !== undefined) context.host.warn(warning);
      return datasetDefinition(input, options.compression);
    },
    options,
    context,
    access,
  );
}

/** Makes the iterator of a `fromId` node. */
function registeredIterator(
  node: FromIdNode,
  context: IteratorContext,
  access: ServiceAccess,
): ElementIterator {
  const { datasetId, options } = node;
  if (options.processingMode === ShardingPolicy.DETERMINISTIC) {
    return new RegisteredOrderedIterator(node, context, access);
  }
  return unorderedIterator(() => ({ datasetId }), options, context, access);
}

function unorderedIterator(
  dataset: () => ClientOptions["dataset"],
  options: DistributeOptions,
  context: IteratorContext,
  access: ServiceAccess,
): ElementIterator {
  const start = (feed: Feed) =>
    access.read(
      options.service,
      options,
      {
        ...clientOptions(dataset(), options, context.randomState.epoch),
        forTask: context.host.forTask,
      },
      feed,
    );
  // With sharing, the number of missed elements is reported even if it is 0.
  if (options.sharing !== undefined) context.stats.missed(0);
  return new DistributedIterator(start, shardingModeOf(options.processingMode), context);
}

class DistributedIterator extends ElementIterator {
  readonly #feed = new Feed();
  readonly #start: (feed: Feed) => () => void;
  #stop: (() => void) | undefined;
  readonly #mode: ShardingMode;
  readonly #context: IteratorContext;
  #ended = false;
  #failure: ReadingFailure | undefined;

  constructor(start: (feed: Feed) => () => void, mode: ShardingMode, context: IteratorContext) {
    super();
    this.#start = start;
    this.#mode = mode;
    this.#context = context;
    context.stats.serves(() => this.#feed.stats());
  }

  override next(): Pulled<unknown> {
    if (this.disposed || this.#ended) return END;
    if (this.#failure !== undefined) throw this.#failure;
    let item: FeedItem | Promise<FeedItem>;
    try {
      // The service is not contacted before the first `next()`.
      this.#stop ??= this.#start(this.#feed);
      item = this.#feed.take();
    } catch (error) {
      return this.#failed(error);
    }
    return item instanceof Promise
      ? this.#context.waitFor(item).then(
        (arrived) => this.#open(arrived),
        (error) => this.#failed(error),
      )
      : this.#open(item);
  }

  /** Always rejects: this process does not have the elements that the workers hold. */
  protected override saveState(): Promise<unknown> {
    return Promise.reject(
      new LeatError(
        "failed_precondition",
        `The iterator of a distributed dataset (${this.#mode}) cannot be saved in this mode: its ` +
          "position is spread over workers that continue on their own. Distribute it with " +
          "processingMode DETERMINISTIC, or begin the epoch again.",
      ),
    );
  }

  protected override restoreState(): Promise<void> {
    return this.saveState() as Promise<never>;
  }

  protected override release(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#feed.drop();
  }

  #open(item: FeedItem): unknown | typeof END {
    const { stats } = this.#context;
    if ("skipped" in item && item.skipped !== undefined) stats.missed(item.skipped);
    if (item.kind === "error") throw stats.failed(LeatError.fromWire(item.error));
    if (item.kind === "element") {
      stats.received(item.element.byteLength);
      return stats.gave(this.#feed.decode(item));
    }
    this.#ended = true;
    this.release();
    return END;
  }

  #failed(error: unknown): typeof END {
    if (this.disposed) return END;
    this.release();
    throw this.#failure = ReadingFailure.of(error);
  }
}

/** The iterator's own state, and the fingerprint of its pipeline. */
interface State {
  readonly fingerprint: string;
  readonly iterator: unknown;
}

/** The iterator of a registered dataset under DETERMINISTIC: it fetches the pipeline first. */
class RegisteredOrderedIterator extends LazyIterator {
  readonly #node: FromIdNode;
  /** The pipeline's fingerprint, once known. */
  #fingerprint = "";

  constructor(node: FromIdNode, context: IteratorContext, access: ServiceAccess) {
    super(context, async () => {
      const { options, datasetId } = node;
      const { forTask } = context.host;
      const definition = await access.dataset(options.service, options, datasetId, forTask);
      const graph = deserializeGraph(definition.graph, { isOwn: node.trustsPipeline });
      checkReproducible(graph);
      checkReadsNoService(graph);
      this.#fingerprint = definition.fingerprint;
      const { compression } = definition;
      const asRegistered = compression === undefined ? options : { ...options, compression };
      const { fingerprint: key } = definition;
      const dataset = {
        input: graph,
        options: asRegistered,
        graphs: node.shared,
        key,
        number: 0,
      };
      return orderedIterator(dataset, context, access);
    });
    this.#node = node;
  }

  protected override async saveState(): Promise<State> {
    const iterator = await super.saveState();
    return { fingerprint: this.#fingerprint, iterator };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const saved = state as State;
    await this.fetched();
    if (this.#fingerprint === saved.fingerprint) return await super.restoreState(saved.iterator);
    throw new LeatError(
      "failed_precondition",
      `The iterator was saved when the dataset "${this.#node.datasetId}" was another pipeline, with ` +
        `fingerprint ${saved.fingerprint}. Its fingerprint is now ${this.#fingerprint}. Register the ` +
        "former pipeline with the service",
    );
  }
}
