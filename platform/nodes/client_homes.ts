/** Finds the node for a client's actor: the node of a cluster in this thread, or one that dials out. */
import type { ClientHome, Credentials, OpenHome } from "../../actors/client/starting.ts";
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../core/error.ts";
import type { Connector } from "../../actors/runtime/link.ts";
import type { World } from "../../actors/runtime/world.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import { nearDialler } from "../process/near_slots.ts";
import { withoutRefusals } from "../../transport/connectors.ts";
import { checkToken, diallerName, webSocketConnector } from "../../transport/web_socket.ts";
import { DenoWorld, type DenoWorldOptions } from "../deno_world.ts";
import { DISPATCHER } from "./node_tokens.ts";
import { admitClient, hasLocalWorker, isNear, nearOr, PROCESS_ID } from "./process_nodes.ts";
import { isLoopbackHost } from "../../transport/loopback.ts";
import { serviceAddress } from "./service_address.ts";
import { definedFields } from "../../core/tree.ts";

const homes = new Map<string, () => ClientHome>();

/** Registers a service under an address that is not a URL; the returned function removes it. */
export function registerHome(address: string, open: () => ClientHome): () => void {
  homes.set(address, open);
  return () => {
    if (homes.get(address) === open) homes.delete(address);
  };
}

/** Credentials of services, by address. Plain data, so that it can be sent to threads. */
export type ServiceCredentials = Readonly<Record<string, Credentials>>;

export interface HomesOptions {
  /** Credentials used when an iterator brings none itself. Default: none. */
  readonly services?: ServiceCredentials | undefined;
  /** Throws for a node that must not be dialled. Default: all may be dialled. */
  readonly mayDial?: (address: string) => void;
  /** Where its nodes print log lines. Default: standard error. */
  readonly print?: NonNullable<DenoWorldOptions["print"]>;
}

interface Dialled {
  readonly system: ActorSystem;
  readonly leaveProcess: () => void;
  uses: number;
}

/** The nodes that dial services: one per service and credentials, until its last iterator stops. */
export class Homes {
  readonly #options: Omit<HomesOptions, "services">;
  readonly #services: ServiceCredentials;
  readonly #dialled = new Map<string, Dialled>();
  /** One for all nodes, also later ones: what is logged once for a world comes once. */
  readonly #world: World;

  constructor({ services = {}, ...options }: HomesOptions = {}) {
    this.#options = options;
    const { print } = options;
    this.#world = new DenoWorld({ logLevel: "warn", ...definedFields({ print }) });
    this.#services = Object.fromEntries(
      Object.entries(services).map(
        ([address, given]) => [serviceAddress(address, "An address in services"), given],
      ),
    );
  }

  /** Finds or makes the node from which a client reaches a service. */
  readonly open: OpenHome = (service, own) => {
    const text = typeof service === "string" ? service : service.address;
    const address = serviceAddress(text, NOT_LOCAL);
    const { mayDial } = this.#options;
    mayDial?.(address);
    const credentials = {
      ...this.#services[address],
      ...definedFields({ token: own.token, ca: own.ca }),
    };
    if (credentials.token !== undefined) checkToken(credentials.token);
    const key = JSON.stringify([address, credentials.token, credentials.ca]);
    const dialled = this.#dialled.getOrInsertComputed(key, () => this.#dial(address, credentials));
    dialled.uses++;
    return {
      system: dialled.system,
      dispatcher: dispatcherAt(address),
      process: PROCESS_ID,
      hasLocalWorker: () => hasLocalWorker(address),
      isFar: (node) => !isNear(node) && !isLoopbackHost(URL.parse(node)?.hostname ?? "localhost"),
      release: () => {
        if (--dialled.uses > 0) return;
        this.#dialled.delete(key);
        dialled.system.stop().finally(dialled.leaveProcess);
      },
    };
  };

  #dial(service: string, { token, ca }: Credentials): Dialled {
    const { mayDial } = this.#options;
    const world = this.#world;
    const node = diallerName("client", world.random.hex64(), token);
    const far = webSocketConnector({
      world,
      // The user chose the service's address, but the service chose the addresses of its workers.
      credentials: (node) => {
        requireTls(service, node);
        return {
          ...(token === undefined ? {} : { token }),
          ...(node === service
            ? { target: "service", identity: DISPATCHER }
            : { target: "node", identity: { name: node, role: "worker" } }),
        };
      },
      ...(ca === undefined ? {} : { ca }),
      near: nearDialler,
    });
    const lenient = withoutRefusals(far, (node) => node === service);
    const connector = nearOr(mayDial === undefined ? lenient : guarded(lenient, mayDial));
    const system = new ActorSystem({ node, world, connector });
    return { system, leaveProcess: admitClient(system), uses: 0 };
  }
}

/** A service with TLS must not lead its readers to a worker without it. */
function requireTls(service: string, node: string): void {
  if (!service.startsWith("wss:") || node.startsWith("wss:")) return;
  throw new LeatError(
    "unavailable",
    `${node} has no TLS, but ${service} has: start that worker with a certificate (--cert, --key)`,
  );
}

/** The subject of the error message about a service address that is no URL. */
const NOT_LOCAL =
  "service (unless it is an open LocalCluster of this thread; other threads and hosts can only read " +
  "from serveDispatcher and serveWorker)";

/** Returns a connector that dials only permitted nodes. */
function guarded(far: Connector, mayDial: (address: string) => void): Connector {
  return {
    connect: (node, local, signal) =>
      Promise.try(() => {
        mayDial(node);
        return far.connect(node, local, signal);
      }),
  };
}

const defaultHomes = new Homes();

/** Finds or makes the node from which a client of this thread reaches a service. */
export const openHome: OpenHome = (service, credentials) => {
  const address = typeof service === "string" ? service : service.address;
  return homes.get(address)?.() ?? defaultHomes.open(address, credentials);
};
