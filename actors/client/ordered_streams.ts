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
import { type Attributes, type DatasetNode, UNKNOWN_CARDINALITY } from "../../data/node.ts";
import { attributesOf, type DistributeOptions } from "../../data/operators/distribute.ts";
import { seedOf } from "../../data/operators/options.ts";
import { ShardNode } from "../../data/operators/shard.ts";
import { UnaryNode } from "../../data/operators/unary.ts";
import { chainOf, distributeChains } from "../../data/deterministic/chain.ts";
import type { ElementSpec } from "../../data/elements/spec.ts";
import { fingerprintGraph } from "../../data/wire.ts";
import type { ClientOptions } from "./client.ts";
import type { KnownReader } from "../../data/service/last_readers.ts";
import type { Feed } from "./feed.ts";
import type { ServiceAccess } from "./access.ts";
import { OrderedIterator } from "./ordered_iterator.ts";
import { clientOptions, datasetDefinition } from "./starting.ts";
import { definedFields } from "../../core/tree.ts";

export function orderedIterator(
  input: DatasetNode,
  options: DistributeOptions,
  context: IteratorContext,
  access: ServiceAccess,
): ElementIterator {
  const { numConsumers, consumerIndex } = options;
  const streams: StreamNode[] = [];
  const reader = readerOf(streams, options, context);
  const seed = seedOf(input) ?? 0n;
  // With several streams, the figures of one do not describe all.
  const onFeed = (feed: Feed) => {
    if (streams.length === 1) context.stats.serves(() => feed.stats());
  };
  const root = distributeChains(input, (chain, number) => {
    const named = options.jobName === undefined || chain === input
      ? options
      : { ...options, jobName: `${options.jobName}/${number}` };
    const stream = new StreamNode(chain, named, { seed, access, reader, onFeed });
    streams.push(stream);
    return stream;
  });
  const here = [root, ...streams.map((stream) => stream.inputs[0]!)].flatMap(partsAtReader);
  refuseForeignFunctions(here, context.host);
  if (root instanceof StreamNode) {
    return streamIterator(root.inputs[0]!, {
      seed,
      options,
      access,
      reader,
      context,
      ownOnly: true,
    });
  }
  // Operators in this process need the whole stream: other consumers' elements are dropped last.
  const graph = numConsumers === undefined
    ? root
    : new ShardNode(root, numConsumers, consumerIndex!);
  return context.instead(graph, new RandomStream(seed)).makeIterator();
}

/** Operators that do not run on workers: those around chains, and those that join rows of splits. */
function partsAtReader(node: DatasetNode): DatasetNode[] {
  if (node instanceof StreamNode) return [];
  const chain = chainOf(node);
  if (chain !== undefined) return chain.batch === undefined ? [] : [chain.batch, ...chain.after];
  return [node, ...node.inputs.flatMap(partsAtReader)];
}

/** The reader identity sent to services; empty where no other reader is possible. */
type ReaderIdentity = Pick<
  NonNullable<ClientOptions["ordered"]>,
  "stream" | "lastReader" | "restoration" | "runId" | "iterator" | "onJoined"
>;

/**
 * Identifies the reader of a job, the same for all chains and epochs. If the chains change, the
 * same job name means another stream.
 * @param streams One for each chain; complete when the first is opened.
 */
function readerOf(
  streams: readonly StreamNode[],
  { service, jobName, consumerIndex, runId }: DistributeOptions,
  { host, lastReaders }: IteratorContext,
): (isRestored: boolean) => ReaderIdentity {
  if (jobName === undefined) return () => ({});
  const address = typeof service === "string" ? service : service.address;
  return (isRestored) => {
    const chains = streams.map(({ inputs: [chain] }) => fingerprintGraph(chain!));
    const stream = hashJson([jobName, ...chains]);
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

/** A chain in a graph that runs in this process. It gives every consumer the whole stream. */
class StreamNode extends UnaryNode {
  override readonly division = "whole";
  readonly options: DistributeOptions;
  readonly #reading: Pick<StreamOptions, "seed" | "access" | "reader" | "onFeed">;

  constructor(
    chain: DatasetNode,
    options: DistributeOptions,
    reading: Pick<StreamOptions, "seed" | "access" | "reader" | "onFeed">,
  ) {
    super("distribute", chain);
    this.options = options;
    this.#reading = reading;
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
    const { options } = this;
    return streamIterator(this.input, { ...this.#reading, options, context, ownOnly: false });
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
  readonly onFeed?: (feed: Feed) => void;
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
      onFeed?.(feed);
      const identity = reader(place.startAt !== undefined);
      const ordered = {
        ...place,
        ...identity,
        onJoined: (joined: KnownReader) => {
          identity.onJoined?.(joined);
          place.onJoined?.(joined);
        },
        ...(options.runId === undefined ? {} : iteratorOf(context)),
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
 * The number of the dataset's iterator, if the repetition's own number does not tell: passes of a
 * `repeat` in later iterators have numbers without order.
 */
function iteratorOf(
  { iterator, randomState: { epoch } }: IteratorContext,
): Pick<ReaderIdentity, "iterator"> {
  return iterator === 0 || iterator === epoch ? {} : { iterator };
}
