/** Starts a client actor for an iterator: on which node, and with which options. */
import { LeatError } from "../../core/error.ts";
import type { ElementCompression } from "../../data/service/reading_choices.ts";
import type { DatasetNode } from "../../data/node.ts";
import { type DistributeOptions, shardingModeOf } from "../../data/operators/distribute.ts";
import { CustomShardingPolicy } from "../../data/sharding/custom_policy.ts";
import { fingerprintGraph, serializeGraph } from "../../data/wire.ts";
import type { DispatcherProtocol } from "../dispatcher/protocol.ts";
import type { Ref } from "../runtime/ref.ts";
import type { ActorSystem } from "../runtime/system.ts";
import { type ClientOptions, createClient } from "./client.ts";
import type { Feed } from "./feed.ts";
import type { ClientProtocol } from "./protocol.ts";
import { definedFields } from "../../core/tree.ts";

/** A node (actor system) of this process that can reach a service. Client actors run on it. */
export interface ClientHome {
  readonly system: ActorSystem;
  readonly dispatcher: Ref<DispatcherProtocol>;
  /** The name of this process, which may also contain workers. */
  readonly process?: string;
  /** Whether a worker of this process belongs to this service. Left out: unknown. */
  readonly hasLocalWorker?: () => boolean;
  /** Whether a node is reached over a network. Left out: no node is. */
  readonly isFar?: (node: string) => boolean;
  /** Timeouts and limits that the owner of the service has set. */
  readonly timings?: Pick<
    ClientOptions,
    "refreshMs" | "firstAnswerTimeoutMs" | "requestTimeoutMs" | "bufferBytesMax"
  >;
  /** Releases the home. Called once, when the client has stopped or could not start. */
  release(): void;
}

/** Opens the node on which a client of the service runs. Throws if the address is invalid. */
export type OpenHome = (
  service: DistributeOptions["service"],
  credentials: Credentials,
) => ClientHome;

/** Credentials: a token to authenticate the client, and a CA to authenticate the service. */
export type Credentials = Pick<DistributeOptions, "token" | "ca">;

/**
 * Starts a client that feeds `feed`. Returns the function that stops it.
 * @throws LeatError `invalid_argument` if it may read only local workers and there is none.
 */
export function startClient(
  home: ClientHome,
  options: Omit<ClientOptions, "dispatcher">,
  feed: Feed,
): () => void {
  const { process, hasLocalWorker, isFar } = home;
  if (options.parameters.targetWorkers === "local" && hasLocalWorker?.() === false) {
    home.release();
    throw noLocalWorker(home);
  }
  const client = home.system.spawn<ClientProtocol>({
    name: `client-${home.system.world.random.hex64()}`,
    kind: "client",
    restart: "temporary",
    create: (context) =>
      createClient(context, {
        ...home.timings,
        ...options,
        dispatcher: home.dispatcher,
        ...definedFields({ process, isFar }),
      }, feed),
  });
  return () => {
    home.system.stopActor(client.path.slice(1)).finally(() => home.release());
  };
}

function noLocalWorker({ dispatcher }: ClientHome): LeatError {
  return new LeatError(
    "invalid_argument",
    `Local reads need a worker of ${dispatcher.node} in this process, and there is none. Start one ` +
      'with serveWorker({ dispatcher, local: true }) before reading, or leave targetWorkers at "auto"',
  );
}

/** A pipeline in the form in which it is registered. */
export function datasetDefinition(
  input: DatasetNode,
  compression: ElementCompression = "auto",
): Exclude<ClientOptions["dataset"], { readonly datasetId: string }> {
  return {
    graph: serializeGraph(input),
    fingerprint: fingerprintGraph(input),
    cardinality: input.cardinality === Infinity ? -1 : input.cardinality,
    ...(compression === "auto" ? {} : { compression }),
  };
}

/** The options of a client that reads the dataset with the options of `distribute`. */
export function clientOptions(
  dataset: ClientOptions["dataset"],
  options: DistributeOptions,
  repetition: number,
): Omit<ClientOptions, "dispatcher"> {
  const { processingMode, jobName, numConsumers, consumerIndex } = options;
  const { sharing, targetWorkers = "auto", targetTags = [] } = options;
  const { maxOutstandingRequests, bufferBytesMax } = options;
  return {
    dataset,
    parameters: {
      processingMode: shardingModeOf(processingMode),
      ...(processingMode instanceof CustomShardingPolicy
        ? { policy: processingMode.toWire() }
        : {}),
      sharing: sharing !== undefined,
      ...(numConsumers === undefined ? {} : { numConsumers }),
      ...(targetWorkers === "auto" ? {} : { targetWorkers }),
      ...(targetTags.length === 0 ? {} : { targetTags }),
    },
    repetition,
    ...definedFields({ jobName, consumerIndex, maxOutstandingRequests, bufferBytesMax }),
    ...(sharing === undefined ? {} : { trainerId: sharing.trainerId }),
  };
}
