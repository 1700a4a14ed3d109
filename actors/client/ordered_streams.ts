/**
 * The iterator behind `dataset.distribute({ processingMode: "DETERMINISTIC" })`: reads each chain
 * of the pipeline as a stream, and runs the other operators in this process.
 */
import { hexOf64 } from "../../core/bytes.ts";
import { hashJson } from "../../core/hash.ts";
import { RandomStream } from "../../core/philox.ts";
import type { IteratorContext } from "../../data/context.ts";
import { refuseForeignFunctions } from "../../data/foreign/foreign.ts";
import type { ElementIterator } from "../../data/iterator.ts";
import {
  type Attributes,
  type DatasetNode,
  servedIterator,
  UNKNOWN_CARDINALITY,
} from "../../data/node.ts";
import { attributesOf, type DistributeOptions } from "../../data/operators/distribute.ts";
import { seedOf } from "../../data/operators/options.ts";
import { UnaryNode } from "../../data/operators/unary.ts";
import { chainOf, distributeChains } from "../../data/deterministic/chain.ts";
import type { SharedGraphs } from "../../data/checkpoint/shared_state.ts";
import type { ElementSpec } from "../../data/elements/spec.ts";
import { fingerprintGraph } from "../../data/wire.ts";
import type { ClientOptions } from "./client.ts";
import type { KnownReader } from "../../data/service/last_readers.ts";
import type { Feed } from "./feed.ts";
import type { ServiceAccess } from "./access.ts";
import { OrderedIterator } from "./ordered_iterator.ts";
import { ReaderIterator } from "./reader_iterator.ts";
import { clientOptions, datasetDefinition } from "./starting.ts";
import { definedFields } from "../../core/tree.ts";

/** A DETERMINISTIC dataset, as the operator knows it that reads it. */
export interface OrderedDataset {
  readonly input: DatasetNode;
  readonly options: DistributeOptions;
  readonly graphs: SharedGraphs;
  /** Tells `input` from other inputs of the operator. */
  readonly key: string;
  /** The number of the last operator of `input`, for figures and errors. */
  readonly number: number;
}

export function orderedIterator(
  { input, options, graphs, key, number }: OrderedDataset,
  context: IteratorContext,
  access: ServiceAccess,
): ElementIterator {
  const { numConsumers: count, consumerIndex: index } = options;
  // Consumers may leave at different elements, and all must read the same epochs. So each of their
  // iterators has caches of its own.
  const graph = count === undefined
    ? graphs.of(key, context, () => readerGraph(input, options))
    : readerGraph(input, options);
  refuseForeignFunctions(partsAtReader(graph), context.host);
  if (graph instanceof StreamNode) return graph.iterator(context, access, { ownOnly: true });
  const within = context.instead(graph, new RandomStream(seedOf(input) ?? 0n), number);
  const consumer = count === undefined ? undefined : { index: index!, count, graph };
  return new ReaderIterator(context, within, consumer);
}

/** The operators that the reader runs, with a `StreamNode` for each chain. */
function readerGraph(input: DatasetNode, options: DistributeOptions): DatasetNode {
  const { jobName } = options;
  const seed = seedOf(input) ?? 0n;
  const chains: DatasetNode[] = [];
  return distributeChains(input, (chain, number) => {
    const named = jobName === undefined || chain === input
      ? options
      : { ...options, jobName: `${jobName}/${number}` };
    chains.push(chain);
    return new StreamNode(chain, named, { seed, chains, jobName });
  });
}

/** Operators that do not run on workers: those around chains, and those that join rows of splits. */
function partsAtReader(node: DatasetNode): DatasetNode[] {
  const chain = chainOf(node);
  if (chain !== undefined) return chain.batch === undefined ? [] : [chain.batch, ...chain.after];
  return [node, ...node.inputs.flatMap(partsAtReader)];
}

/** The reader identity sent to services; empty where no other reader is possible. */
type ReaderIdentity = Pick<
  NonNullable<ClientOptions["ordered"]>,
  "stream" | "lastReader" | "restoration" | "runId" | "iterator" | "onJoined"
>;

/** A dataset whose chains are read as streams. */
interface StreamsOf {
  readonly seed: bigint;
  /** Complete when the first stream is opened. */
  readonly chains: readonly DatasetNode[];
  /** The job's name; that of a chain has a number besides. */
  readonly jobName: string | undefined;
}

/** A chain in a graph that runs in this process. It gives every consumer the whole stream. */
export class StreamNode extends UnaryNode {
  override readonly division = "whole";
  override readonly isNumbered = false;
  readonly options: DistributeOptions;
  readonly #of: StreamsOf;

  constructor(chain: DatasetNode, options: DistributeOptions, of: StreamsOf) {
    super("distribute", chain);
    this.options = options;
    this.#of = of;
  }

  override get attributes(): Attributes {
    return attributesOf(this.options);
  }

  override get elementSpec(): ElementSpec {
    return this.input.elementSpec;
  }

  override get cardinality(): number {
    return UNKNOWN_CARDINALITY;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return servedIterator(this, context);
  }

  /** @param ownOnly With consumers: whether it gives this consumer's own elements only. */
  iterator(
    context: IteratorContext,
    access: ServiceAccess,
    { ownOnly }: { readonly ownOnly: boolean },
  ): ElementIterator {
    const { seed, chains } = this.#of;
    return streamIterator(this.input, {
      seed,
      access,
      reader: this.#reader(context),
      options: this.options,
      context,
      ownOnly,
      // With several streams, the figures of one do not describe all.
      onFeed: (feed) => {
        if (!ownOnly && chains.length === 1) context.stats.openerServes(() => feed.stats());
      },
    });
  }

  /**
   * Identifies the reader of a job, the same for all chains and epochs. If the chains change, the
   * same job name means another stream.
   */
  #reader({ host, lastReaders }: IteratorContext): (isRestored: boolean) => ReaderIdentity {
    const { chains, jobName } = this.#of;
    const { service, consumerIndex, runId } = this.options;
    if (jobName === undefined) return () => ({});
    const address = typeof service === "string" ? service : service.address;
    return (isRestored) => {
      const stream = hashJson([jobName, ...chains.map(fingerprintGraph)]);
      const key = JSON.stringify([address, stream, consumerIndex]);
      const lastReader = lastReaders.of(key);
      return {
        stream,
        ...(isRestored ? { restoration: lastReaders.restoration(host) } : {}),
        ...definedFields({ lastReader, runId }),
        onJoined: (reader) => lastReaders.note(key, reader),
      };
    };
  }
}

interface StreamOptions {
  readonly seed: bigint;
  readonly options: DistributeOptions;
  readonly access: ServiceAccess;
  /** The current reader identity. */
  readonly reader: (isRestored: boolean) => ReaderIdentity;
  readonly context: IteratorContext;
  /** With consumers: gives this consumer's own elements only. */
  readonly ownOnly: boolean;
  /** Receives the feed that elements come through, once it exists. */
  readonly onFeed: (feed: Feed) => void;
}

function streamIterator(node: DatasetNode, stream: StreamOptions): ElementIterator {
  const { seed, options, access, reader, context, ownOnly, onFeed } = stream;
  const { jobName, numConsumers, consumerIndex } = options;
  const chain = chainOf(node)!;
  return new OrderedIterator({
    context,
    chain,
    seed,
    isOneOfSeveral: numConsumers !== undefined,
    ...(jobName === undefined ? {} : { jobName }),
    ...(ownOnly && numConsumers !== undefined
      ? { consumer: { index: consumerIndex!, count: numConsumers } }
      : {}),
    start: (place, feed) => {
      onFeed(feed);
      const identity = reader(place.startAt !== undefined);
      const ordered = {
        ...place,
        ...identity,
        onJoined: (joined: KnownReader) => {
          identity.onJoined?.(joined);
          place.onJoined?.(joined);
        },
        ...(options.runId === undefined && numConsumers === undefined ? {} : iteratorOf(context)),
      };
      const dataset = datasetDefinition(node, options.compression);
      const reading = clientOptions(dataset, options, context.randomState.epoch);
      const parameters = {
        ...reading.parameters,
        ordered: { seed: hexOf64(seed), shuffled: chain.shuffled },
      };
      const { forTask } = context.host;
      return access.read(
        options.service,
        options,
        { ...reading, parameters, ordered, forTask },
        feed,
      );
    },
  });
}

/**
 * The number of the dataset's iterator: that of the repetition does not tell it, as the passes of a
 * `repeat` in later iterators have numbers without order.
 */
function iteratorOf({ iterator }: IteratorContext): Pick<ReaderIdentity, "iterator"> {
  return iterator === 0 ? {} : { iterator };
}
