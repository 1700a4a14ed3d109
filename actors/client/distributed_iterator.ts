/**
 * The iterator behind `dataset.distribute(…)`: it starts a client actor and takes what that is fed.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../../data/context.ts";
import { ElementIterator, END, type Pulled } from "../../data/iterator.ts";
import type { DatasetNode } from "../../data/node.ts";
import type { DistributeOptions } from "../../data/operators/distribute.ts";
import { ShardingPolicy } from "../../data/sharding_policy.ts";
import { fingerprintGraph, serializeGraph } from "../../data/wire.ts";
import { decodeMessage } from "../../transport/codec.ts";
import type { DispatcherProtocol } from "../dispatcher/protocol.ts";
import type { Ref } from "../runtime/ref.ts";
import type { ActorSystem } from "../runtime/system.ts";
import { type ClientOptions, type ClientProtocol, createClient } from "./client.ts";
import { type Fed, Feed } from "./feed.ts";

/** A node of this process from which a service can be reached. */
export interface ClientHome {
  readonly system: ActorSystem;
  readonly dispatcher: Ref<DispatcherProtocol>;
  /** Timings that the service's owner has chosen. */
  readonly timings?: Pick<ClientOptions, "refreshMs" | "firstAnswerTimeoutMs" | "requestTimeoutMs">;
  /** The iterator has ended: the home may be given up. */
  release(): void;
}

/** Finds a home for a client of the service. Throws when the address makes no sense. */
export type OpenHome = (
  service: DistributeOptions["service"],
  credentials: Credentials,
) => ClientHome;

/** What opens a service, and what makes it believable. */
export type Credentials = Pick<DistributeOptions, "token" | "ca">;

/** Makes the iterator of a `distribute` node. */
export function distributedIterator(
  input: DatasetNode,
  options: DistributeOptions,
  context: IteratorContext,
  openHome: OpenHome,
): ElementIterator {
  return new DistributedIterator(() => ({
    home: openHome(options.service, options),
    options: clientOptions(input, options, context.luck.epoch),
  }));
}

type Start = () => {
  readonly home: ClientHome;
  readonly options: Omit<ClientOptions, "dispatcher">;
};

class DistributedIterator extends ElementIterator {
  readonly #feed = new Feed();
  readonly #start: Start;
  #stop: (() => void) | undefined;
  #ended = false;

  constructor(start: Start) {
    super();
    this.#start = start;
  }

  override next(): Pulled<unknown> {
    if (this.disposed || this.#ended) return END;
    this.#stop ??= this.#begin();
    const fed = this.#feed.take();
    return fed instanceof Promise
      ? fed.then((arrived) => this.#open(arrived), (error) => this.#failed(error))
      : this.#open(fed);
  }

  protected override release(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  /** Nothing is asked of the service before the first `next()`. */
  #begin(): () => void {
    const { home, options } = this.#start();
    const client = home.system.spawn<ClientProtocol>({
      name: `client-${home.system.world.random.hex64()}`,
      kind: "client",
      restart: "temporary",
      create: (context) =>
        createClient(
          context,
          { ...home.timings, ...options, dispatcher: home.dispatcher },
          this.#feed,
        ),
    });
    return () => {
      home.system.stopActor(client.path.slice(1)).finally(() => home.release());
    };
  }

  #open(fed: Fed): unknown | typeof END {
    if (fed.kind === "error") throw LeatError.fromWire(fed.error);
    if (fed.kind === "element") {
      const { bytes, shared } = fed.element;
      return decodeMessage(bytes, { copy: shared });
    }
    this.#ended = true;
    this.release();
    return END;
  }

  #failed(error: unknown): typeof END {
    if (this.disposed) return END;
    throw error;
  }
}

function clientOptions(
  input: DatasetNode,
  options: DistributeOptions,
  repetition: number,
): Omit<ClientOptions, "dispatcher"> {
  const { processingMode = ShardingPolicy.OFF, jobName, numConsumers, consumerIndex } = options;
  const { sharing, maxOutstandingRequests } = options;
  return {
    dataset: {
      graph: serializeGraph(input),
      fingerprint: fingerprintGraph(input),
      cardinality: input.cardinality === Infinity ? -1 : input.cardinality,
    },
    parameters: {
      processingMode,
      sharing: sharing !== undefined,
      ...(numConsumers === undefined ? {} : { numConsumers }),
    },
    repetition,
    ...(jobName === undefined ? {} : { jobName }),
    ...(consumerIndex === undefined ? {} : { consumerIndex }),
    ...(sharing === undefined ? {} : { trainerId: sharing.trainerId }),
    ...(maxOutstandingRequests === undefined ? {} : { maxOutstandingRequests }),
  };
}
