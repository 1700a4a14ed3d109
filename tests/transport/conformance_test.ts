/** The production carriers under the conformance suite. */
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { type Identity, SAME_PROCESS } from "../../actors/runtime/identity.ts";
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import { LeatError } from "../../core/error.ts";
import { inlinePair } from "../../transport/inline.ts";
import { openProcessLink, type ProcessLinkOptions } from "../../transport/process/link.ts";
import { webSocketConnector } from "../../transport/web_socket.ts";
import { serveWebSocket } from "../../transport/web_socket/server.ts";
import { portLink } from "../../transport/web_worker.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { nearDialler, NearFolder } from "../../platform/process/near_slots.ts";
import { conformance } from "./conformance.ts";
import type { CarrierUnderTest } from "./conformance_lib.ts";
import { ProcessPipes } from "./process_pipes.ts";
import { TcpProxy } from "./tcp_proxy.ts";

/** A busy machine may need long. */
const PATIENCE_MS = 600_000;
const CUT = new LeatError("unavailable", "cut for the test");

/** Common parts of carriers in real time. */
function realTime(): Pick<CarrierUnderTest, "worlds" | "run" | "settle" | "close"> {
  return {
    worlds: [new DenoWorld({ logLevel: "off" }), new DenoWorld({ logLevel: "off" })],
    run: (promise) => promise,
    settle: () => new Promise((resolve) => setTimeout(resolve, 20)),
    close: () => Promise.resolve(),
  };
}

conformance("inline", () => {
  const base = realTime();
  const [nearWorld, farWorld] = base.worlds;
  return Promise.resolve({
    ...base,
    name: "inline",
    overtakes: false,
    join(nearId, farId, limits) {
      const [near, far] = inlinePair(nearWorld, nearId, farWorld, farId, limits);
      return Promise.resolve({ near, far, cut: () => near.close(CUT) });
    },
  });
});

conformance("web_worker", () =>
  Promise.resolve({
    ...realTime(),
    name: "web_worker",
    overtakes: false,
    join(nearId, farId, limits) {
      const { port1, port2 } = new MessageChannel();
      const near = portLink(port1, farId, limits);
      const far = portLink(port2, nearId, limits);
      return Promise.resolve({
        near,
        far,
        // A port does not report it: the hub notifies both ends.
        cut() {
          port1.close();
          near.close(CUT);
          far.close(CUT);
        },
      });
    },
  }));

for (const name of ["web_socket", "slots"]) {
  conformance(name, () => {
    const base = realTime();
    const [nearWorld, farWorld] = base.worlds;
    const open: AsyncDisposable[] = [];
    const folder = name === "web_socket" ? undefined : new NearFolder();
    return Promise.resolve({
      ...base,
      name,
      overtakes: true,
      async join(nearId, farId, limits = {}) {
        const arrived = Promise.withResolvers<Link>();
        const server = serveWebSocket({
          helloTimeoutMs: PATIENCE_MS,
          world: farWorld,
          hostname: "127.0.0.1",
          port: 0,
          local: () => farId,
          onLink: arrived.resolve,
          limits,
          near: () => folder,
        });
        const proxy = new TcpProxy(server.port);
        open.push({ [Symbol.asyncDispose]: () => server.close() }, proxy);
        const connector = webSocketConnector({
          ...{ world: nearWorld, limits, near: nearDialler },
          connectTimeoutMs: PATIENCE_MS,
        });
        const near = await connector.connect(`ws://127.0.0.1:${proxy.port}`, nearId);
        // The suite chooses names freely; a dialler calls a node by the address it dialled.
        const named = new NamedLink(near, farId);
        return { near: named, far: await arrived.promise, cut: () => proxy.cut() };
      },
      async close() {
        for (const part of open) await part[Symbol.asyncDispose]();
        folder?.remove();
      },
    });
  });
}

conformance("process", () => {
  const open: ProcessPipes[] = [];
  return Promise.resolve({
    ...realTime(),
    name: "process",
    // One pipe carries everything, in order.
    overtakes: false,
    async join(nearId, farId, limits = {}) {
      const pipes = new ProcessPipes();
      const options: ProcessLinkOptions = { limits, identity: SAME_PROCESS };
      open.push(pipes);
      const [near, far] = await Promise.all([
        openProcessLink(pipes.near(), nearId, "listener", options),
        openProcessLink(pipes.far(), farId, "dialler", options),
      ]);
      return { near, far, cut: () => pipes.cut() };
    },
    async close() {
      for (const pipes of open) await pipes[Symbol.asyncDispose]();
    },
  });
});

/** A link whose other end has another name. */
class NamedLink implements Link {
  readonly remote: NodeId;
  readonly identity: Identity;
  readonly closed: Promise<LeatError>;
  readonly #link: Link;

  constructor(link: Link, remote: NodeId) {
    this.#link = link;
    this.remote = remote;
    this.identity = link.identity;
    this.closed = link.closed;
  }
  get bufferedBytes(): number {
    return this.#link.bufferedBytes;
  }
  start(receive: (envelope: Envelope) => void): void {
    const { node } = this.remote;
    this.#link.start((envelope) => receive({ ...envelope, source: { ...envelope.source, node } }));
  }
  send(envelope: Envelope, senderKeepsBody?: boolean): boolean {
    return this.#link.send(envelope, senderKeepsBody);
  }
  ready(): Promise<void> {
    return this.#link.ready();
  }
  close(reason?: LeatError): void {
    this.#link.close(reason);
  }
}
