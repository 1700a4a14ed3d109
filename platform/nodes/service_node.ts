/** A node of the service that listens on a socket. Dispatchers and workers share this part. */
import type { Connector, Link } from "../../actors/runtime/link.ts";
import type { FencedRef } from "../../actors/runtime/ref.ts";
import { sleep } from "../../actors/runtime/timers.ts";
import { ActorSystem, type SystemOptions } from "../../actors/runtime/system.ts";
import type { LogLevel } from "../../actors/runtime/world.ts";
import { connectorByScheme, withoutRefusals } from "../../transport/connectors.ts";
import {
  type Admission,
  type Pages,
  webSocketConnector,
  type WebSocketServer,
} from "../../transport/web_socket.ts";
import { anotherNode } from "../../transport/web_socket/remedies.ts";
import { serveWebSocket } from "../../transport/web_socket/server.ts";
import { DenoWorld, type DenoWorldOptions } from "../deno_world.ts";
import { type NearFolder, nearFolder } from "../process/near_slots.ts";
import { type DialTarget, NodeTokens, type TokenConfig } from "./node_tokens.ts";
import { advertisedAddress, bareHost } from "./service_address.ts";
import { PROXY_KINDS } from "./service_kinds.ts";
import { definedFields } from "../../core/tree.ts";

/** Limit of the time that a closing node waits until peers have received what was sent, in ms. */
const FLUSH_TIMEOUT_MS = 1_000;
const FLUSH_POLL_MS = 5;

/** Options of a server of the service: listening, addresses, TLS and tokens. */
export interface ServiceNodeConfig extends TokenConfig {
  /** The interface to listen on; `0.0.0.0` for all. Default `127.0.0.1`. */
  readonly hostname?: string;
  /** The port to listen on. 0 (the default) takes a free one. */
  readonly port?: number;
  /**
   * The host, or `host:port`, at which others reach this server. Default: the address it listens on.
   * If it listens on all interfaces: a non-loopback address of this host.
   */
  readonly advertise?: string;
  /** The certificate chain of this server in PEM; with `key`, connections are encrypted (`wss:`). */
  readonly cert?: string;
  /** The private key of the certificate, in PEM. */
  readonly key?: string;
  /** Certificates of authorities in PEM to trust besides the usual ones, for `wss:`. */
  readonly ca?: string;
  /** Allows listening beyond this machine without a token. Default false. */
  readonly insecure?: boolean;
  /** The lowest log level to print on standard error. Default `"info"`. */
  readonly logLevel?: LogLevel | "off";
}

export interface ServiceNodeParts {
  /** The folder of the node's durable logs. Default: logs are in memory. */
  readonly logFolder?: string;
  readonly supervision?: NonNullable<SystemOptions["supervision"]>;
  /** Connects to nodes whose names are not URLs: those of the same process. */
  readonly near?: Connector;
  /** Whether this node may dial another, by its name. Default: all. */
  readonly mayDial?: (node: string) => boolean;
  /** See `WebSocketServerOptions`. */
  readonly ownerOf?: (node: string) => string | undefined;
  /** Which nodes this node dials. This decides which tokens it proves. Default: it proves none. */
  readonly dialling?: DialTarget;
  /** Whether clients of this host may receive large messages through a shared file. */
  readonly sharesSlots?: boolean;
  /** The pages for HTTP requests that are not WebSocket upgrades. */
  readonly pages?: Pages;
}

/** A node that listens. Its name is the address that it advertises. */
export class ServiceNode {
  readonly system: ActorSystem;
  readonly #server: WebSocketServer;
  readonly #connector: Connector;
  readonly #tokens: NodeTokens;
  readonly #links = new Set<Link>();
  readonly #near: NearFolder | undefined;

  /**
   * Listens, and starts the node.
   * @throws LeatError as `serveWebSocket` does, and `invalid_argument` for an invalid `advertise`.
   */
  constructor(config: ServiceNodeConfig, parts: ServiceNodeParts = {}) {
    const { port = 0, advertise, cert, key, ca, insecure } = config;
    const hostname = bareHost(config.hostname ?? "127.0.0.1");
    const scheme = cert === undefined ? "ws" : "wss";
    // Checked before listening, so that an invalid `advertise` is reported first.
    advertisedAddress({ scheme, hostname, port }, advertise);
    const { logFolder, supervision, near, mayDial, ownerOf, pages, dialling } = parts;
    const worldOptions: DenoWorldOptions = {
      ...(config.logLevel === undefined ? {} : { logLevel: config.logLevel }),
      ...(logFolder === undefined ? { logsInMemory: true } : { logFolder }),
    };
    const world = new DenoWorld(worldOptions);
    const tokens = new NodeTokens(world, config, dialling, ownerOf);
    this.#tokens = tokens;
    const socket = webSocketConnector({
      world,
      credentials: (node) => tokens.credentialFor(node, this.address),
      onLink: (link, credential) => tokens.dialled(link, credential),
      ...(ca === undefined ? {} : { ca }),
    });
    this.#connector = connectorByScheme({ ws: socket, wss: socket }, near);
    const { accepted } = tokens;
    try {
      this.#server = serveWebSocket({
        world,
        hostname,
        port,
        isService: dialling === "workers",
        ...(accepted === undefined ? {} : { tokens: accepted }),
        ...definedFields({ cert, key, insecure, ownerOf }),
        local: () => this.system.id,
        onLink: (link, admission) => this.#accept(link, admission),
        hasSpareFiles,
        near: () => this.#near,
        ...(pages === undefined ? {} : { pages }),
      });
    } catch (error) {
      tokens.close();
      throw error;
    }
    // Created after listening: a server that cannot listen must leave no folder behind.
    this.#near = parts.sharesSlots === true ? nearFolder() : undefined;
    this.system = new ActorSystem({
      node: advertisedAddress({ scheme, hostname, port: this.#server.port }, advertise),
      world,
      connector: dialling === "workers" ? withoutRefusals(this.#connector) : this.#connector,
      ...(mayDial === undefined ? {} : { mayDial }),
      kinds: PROXY_KINDS,
      ...(supervision === undefined ? {} : { supervision }),
    });
  }

  get port(): number {
    return this.#server.port;
  }

  /** The address by which others know this node. */
  get address(): string {
    return this.system.id.node;
  }

  /**
   * Checks over a new connection that the node of an actor answers at its address.
   * @throws LeatError as dialling does; `failed_precondition` when another node answers there.
   */
  async dial(target: FencedRef): Promise<void> {
    const { random } = this.system.world;
    const link = await this.#connector.connect(target.node, {
      node: `probe-${random.hex64()}`,
      incarnation: random.hex64(),
    });
    link.close();
    if (!target.incarnation.startsWith(`${link.remote.incarnation}-`)) {
      throw anotherNode(target.node);
    }
  }

  /** Resolves when peers have received what was sent to them, or after a second. */
  async flushed(): Promise<void> {
    const { world } = this.system;
    const deadlineMs = world.nowMs() + FLUSH_TIMEOUT_MS;
    while (
      world.nowMs() < deadlineMs && [...this.#links].some((link) => link.bufferedBytes > 0)
    ) await sleep(world, FLUSH_POLL_MS);
  }

  /** Drops all links and stops listening, as at a power cut; the actors do not notice. */
  cut(): Promise<void> {
    return this.#server.close();
  }

  /** Stops the actors, then the links, then listening. */
  async stop(): Promise<void> {
    this.#tokens.close();
    await this.system.stop();
    await this.#server.close();
    this.#near?.remove();
  }

  #accept(link: Link, admission: Admission): void {
    this.#tokens.admitted(link.remote.node, admission);
    this.#links.add(link);
    link.closed.then(() => this.#links.delete(link));
    this.system.attach(link);
  }
}

/** The file that is opened to check for free file handles. */
const NULL_DEVICE = "/dev/null";

/**
 * Whether this process may open `count` more files and connections. True on Windows, which has no such
 * limit, and if this process has no permission to read {@linkcode NULL_DEVICE}.
 */
function hasSpareFiles(count: number): boolean {
  if (Deno.build.os === "windows") return true;
  if (Deno.permissions.querySync({ name: "read", path: NULL_DEVICE }).state !== "granted") {
    return true;
  }
  const opened: Deno.FsFile[] = [];
  try {
    for (let i = 0; i < count; i++) opened.push(Deno.openSync(NULL_DEVICE));
    return true;
  } catch {
    return false;
  } finally {
    for (const file of opened) file.close();
  }
}
