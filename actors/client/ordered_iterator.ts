/**
 * The iterator behind `dataset.distribute({ processingMode: "DETERMINISTIC" })`: takes the stream in
 * its order, joins what splits have left over, and knows its place by a few numbers.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { hashJson } from "../../core/hash.ts";
import { isPlainObject } from "../../core/tree.ts";
import { RandomStream } from "../../core/philox.ts";
import type { IteratorContext } from "../../data/context.ts";
import { refuseForeignFunctions } from "../../data/foreign.ts";
import { ElementIterator, END, type Pulled } from "../../data/iterator.ts";
import { type Attributes, type DatasetNode, UNKNOWN_CARDINALITY } from "../../data/node.ts";
import { attributesOf, type DistributeOptions } from "../../data/operators/distribute.ts";
import { seedOf } from "../../data/operators/options.ts";
import { ShardNode } from "../../data/operators/shard.ts";
import { UnaryNode } from "../../data/operators/unary.ts";
import { chainOf, distributeChains, type OrderedChain } from "../../data/ordered/chain.ts";
import { type CarriedRows, type Joined, RemainderJoin } from "../../data/ordered/join.ts";
import { sizeOf } from "../../data/ordered/split_run.ts";
import { ReadingFailure } from "../../data/reading_failure.ts";
import type { ElementSpec } from "../../data/spec.ts";
import { fingerprintGraph } from "../../data/wire.ts";
import type { Payload } from "../../transport/payload.ts";
import type { Place } from "../worker/protocol.ts";
import type { ClientOptions } from "./client.ts";
import { type Fed, Feed } from "./feed.ts";
import type { Numbering } from "./numbering.ts";
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
  const { numConsumers, consumerIndex } = options;
  const streams: StreamNode[] = [];
  const reader = readerOf(streams, options, context);
  // Of several streams none says how it goes with all of them.
  const onFeed = (feed: Feed) => {
    if (streams.length === 1) context.stats.serves(() => feed.stats());
  };
  const root = distributeChains(input, (chain, number) => {
    const named = options.jobName === undefined || chain === input
      ? options
      : { ...options, jobName: `${options.jobName}/${number}` };
    const stream = new StreamNode(chain, named, { access, reader, onFeed });
    streams.push(stream);
    return stream;
  });
  const here = [root, ...streams.map((stream) => stream.inputs[0]!)].flatMap(partsAtReader);
  refuseForeignFunctions(here, context.host);
  const seed = seedOf(input) ?? 0n;
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
  // What is done here needs all of the stream: a consumer leaves out the others' elements at the end.
  const graph = numConsumers === undefined
    ? root
    : new ShardNode(root, numConsumers, consumerIndex!);
  return context.instead(graph, new RandomStream(seed)).makeIterator();
}

/** The operators of a graph that do not run on workers: those around its chains, and those that gather the rows of several splits. */
function partsAtReader(node: DatasetNode): DatasetNode[] {
  if (node instanceof StreamNode) return [];
  const chain = chainOf(node);
  if (chain !== undefined) return chain.batch === undefined ? [] : [chain.batch, ...chain.after];
  return [node, ...node.inputs.flatMap(partsAtReader)];
}

/** What services are told of who reads; nothing where nobody else can. */
type Reader = Pick<
  NonNullable<ClientOptions["ordered"]>,
  "stream" | "lastReader" | "restoration" | "runId" | "onJoined"
>;

/**
 * Who reads the job, with all of its chains, from one epoch to the next. A name that other chains have
 * later is another stream's.
 *
 * @param streams Of all chains, by the time that the first is opened.
 */
function readerOf(
  streams: readonly StreamNode[],
  { service, jobName, consumerIndex, runId }: DistributeOptions,
  { host, lastReaders }: IteratorContext,
): (isRestored: boolean) => Reader {
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
      ...(lastReader === undefined ? {} : { lastReader }),
      ...(runId === undefined ? {} : { runId }),
      onJoined: (reader) => lastReaders.note(key, reader),
    };
  };
}

/** A chain in a graph that runs here: gives the whole of its stream, whichever consumer reads it. */
class StreamNode extends UnaryNode {
  override readonly division = "whole";
  readonly options: DistributeOptions;
  readonly #reading: Pick<StreamOptions, "access" | "reader" | "onFeed">;

  constructor(
    chain: DatasetNode,
    options: DistributeOptions,
    reading: Pick<StreamOptions, "access" | "reader" | "onFeed">,
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
    const seed = seedOf(this.input) ?? 0n;
    const { options } = this;
    return streamIterator(this.input, { ...this.#reading, seed, options, context, ownOnly: false });
  }
}

interface StreamOptions {
  readonly seed: bigint;
  readonly options: DistributeOptions;
  readonly access: ServiceAccess;
  /** Who reads, by now. */
  readonly reader: (isRestored: boolean) => Reader;
  readonly context: IteratorContext;
  /** With consumers: gives what is this one's own, and nothing else. */
  readonly ownOnly: boolean;
  /** Told of what elements come through, when they do. */
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
    isShared: numConsumers !== undefined,
    ...(jobName === undefined ? {} : { jobName }),
    ...(ownOnly && numConsumers !== undefined
      ? { consumer: { index: consumerIndex!, count: numConsumers } }
      : {}),
    start: (place, feed) => {
      onFeed?.(feed);
      const ordered = { ...place, ...reader(place.startAt !== undefined) };
      const dataset = definitionOf(node, options.compression);
      const reading = clientOptions(dataset, options, context.luck.epoch);
      const parameters = {
        ...reading.parameters,
        ordered: { seed: hex64(seed), shuffled: chain.shuffled },
      };
      return access.read(options.service, options, { ...reading, parameters, ordered }, feed);
    },
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
  /** With consumers: the number of the next element, all of them counted. */
  readonly number?: number;
  /** With consumers: some of them were given something, so that the stream is not empty. */
  readonly hasElements?: true;
}

/** @throws LeatError `invalid_argument` for what `save()` never wrote. */
function checkPosition({ sequence, given, carried, digest, ended, number = 0 }: Position): void {
  const isPosition = [sequence, given, number].every(isCount) && typeof ended === "boolean" &&
    (digest === null || typeof digest === "string") && Array.isArray(carried) &&
    carried.every((rest) => isPlainObject(rest) && isCount(rest.sequence) && isCount(rest.rows));
  if (isPosition) return;
  throw new LeatError(
    "invalid_argument",
    "restore: this state holds no place in a stream; restore what save() of this pipeline resolved to.",
  );
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && value as number >= 0;
}

interface OrderedIteratorOptions {
  readonly context: IteratorContext;
  readonly chain: OrderedChain;
  readonly seed: bigint;
  /** Which elements are given: of `count` consumers, those of one. Left out: all. */
  readonly consumer?: { readonly index: number; readonly count: number };
  /** Whether there are consumers, this one among them: `number` counts the elements of all. */
  readonly isShared: boolean;
  /** Under which others may be reading it. Left out: nobody else can. */
  readonly jobName?: string;
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
  /** Reading cannot go on. Another iterator may, from the position. */
  #failure: ReadingFailure | undefined;

  constructor(options: OrderedIteratorOptions) {
    super();
    this.#options = options;
    const { context, chain, seed } = options;
    context.stats.serves(() => this.#feed.stats());
    const { host, luck: { epoch } } = context;
    this.#join = new RemainderJoin(chain, { host, seed, epoch, within: context });
  }

  override next(): Pulled<unknown> {
    if (this.disposed || this.#position.ended) return END;
    if (this.#failure !== undefined) throw this.#failure;
    try {
      this.#stop ??= this.#begin();
    } catch (error) {
      throw this.#fail(error);
    }
    return this.#pull();
  }

  protected override saveState(): Promise<Position> {
    return Promise.resolve(this.#position);
  }

  protected override restoreState(state: unknown): Promise<void> {
    const { sequence, given, carried, digest, ended, ...more } = state as Position;
    const position = { sequence, given, carried, digest, ended, ...more };
    checkPosition(position);
    // At the end of what others read, too, it comes to the end again: else other consumers would wait for it,
    // and who was replaced could read on.
    const isShared = ended && this.#options.jobName !== undefined;
    this.#restored = this.#position = isShared
      ? { ...position, carried: [], ended: false }
      : position;
    return Promise.resolve();
  }

  protected override release(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  #begin(): () => void {
    const { context, jobName } = this.#options;
    // Also where the epoch had not begun, or the one before was at its end: somebody may read further on.
    const takesOver = jobName !== undefined && context.lastReaders.opensRestored(jobName);
    const restored = this.#restored ?? (takesOver ? this.#position : undefined);
    const onTable = (digest: string) => this.#position = { ...this.#position, digest };
    const numbering = this.#numbering();
    if (restored === undefined) return this.#options.start({ onTable, ...numbering }, this.#feed);
    // Of splits before it only those are produced once more whose rows wait for a batch.
    const { sequence: startAt, carried } = restored;
    const behind = carried.map(({ sequence }) => sequence);
    const expected = restored.digest === null ? {} : { expectedDigest: restored.digest };
    return this.#options.start({ startAt, behind, onTable, ...expected, ...numbering }, this.#feed);
  }

  #numbering(): { readonly numbering?: Numbering } {
    const { consumer, chain: { batch } } = this.#options;
    if (consumer === undefined) return {};
    const { number = 0, given, carried } = this.#position;
    const numbering = {
      first: number - given,
      batchSize: batch === undefined ? null : sizeOf(batch),
      carriedRows: carried.reduce((sum, { rows }) => sum + rows, 0),
    };
    return { numbering };
  }

  /** What of a position is about numbers. */
  #numbered(number: number): Pick<Position, "number"> {
    return this.#options.consumer === undefined ? {} : { number };
  }

  /** Whether the element with that number is to be given here. */
  #isOwn(number: number): boolean {
    const { consumer } = this.#options;
    return consumer === undefined || number % consumer.count === consumer.index;
  }

  async #pull(): Promise<unknown> {
    for (;;) {
      let fed: Fed;
      try {
        fed = await this.#options.context.waitFor(Promise.resolve(this.#feed.take()));
      } catch (error) {
        if (this.disposed) return END;
        throw this.#fail(error);
      }
      if (this.disposed) return END;
      if ("element" in fed) this.#options.context.stats.received(fed.element.bytes.byteLength);
      let given: Joined | typeof END | undefined;
      try {
        given = fed.kind === "end" ? await this.#end() : await this.#take(fed);
      } catch (error) {
        // A batch that is joined may be made in a process that is gone.
        throw error instanceof ReadingFailure ? this.#fail(error) : error;
      }
      if (given === undefined) continue;
      if (given === END) return END;
      if (this.#options.isShared && this.#position.hasElements === undefined) {
        this.#position = { ...this.#position, hasElements: true };
      }
      const { stats } = this.#options.context;
      if ("error" in given) throw stats.failed(given.error);
      return stats.gave(given.element);
    }
  }

  #fail(error: unknown): ReadingFailure {
    this.release();
    return this.#failure = ReadingFailure.of(error);
  }

  /** What follows from one thing that came; `undefined` where nothing does. */
  async #take(fed: Exclude<Fed, { kind: "end" }>): Promise<Joined | undefined> {
    const place = fed.place;
    if (place === undefined) {
      // What has no place is about the whole: reading cannot go on.
      if (fed.kind === "error") throw this.#fail(LeatError.fromWire(fed.error));
      return undefined;
    }
    if (fed.kind === "error" && fed.isFinal === true) {
      throw this.#fail(LeatError.fromWire(fed.error));
    }
    const { number = 0 } = fed;
    if (fed.kind === "remainder") return await this.#joinRows(place, fed.element, number);
    if (fed.kind === "split_end") {
      this.#moveTo(place.sequence + 1, number);
      return undefined;
    }
    if (this.#isKnown(place)) return undefined;
    const { sequence, index } = place;
    this.#position = {
      ...this.#position,
      sequence,
      given: index + 1,
      ...this.#numbered(number + 1),
    };
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

  async #joinRows(
    { sequence, split }: Place,
    rows: Payload,
    number: number,
  ): Promise<Joined | undefined> {
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
    if (joined === undefined) return undefined;
    this.#moveTo(sequence + 1, number + 1);
    return this.#isOwn(number) ? joined : undefined;
  }

  #moveTo(sequence: number, number: number): void {
    if (sequence <= this.#position.sequence) return;
    const { carried } = this.#join;
    this.#position = {
      ...this.#position,
      sequence,
      given: 0,
      carried,
      ...this.#numbered(number),
    };
  }

  async #end(): Promise<Joined | typeof END> {
    const last = await this.#join.end();
    const { number = 0, hasElements = false } = this.#position;
    const isOwn = this.#isOwn(number);
    const hadElements = hasElements || number > 0 || last !== undefined;
    if (this.#options.isShared && hadElements) this.#options.context.notesShare();
    this.#position = { ...this.#position, carried: [], ended: true };
    this.release();
    return last !== undefined && isOwn ? last : END;
  }
}
