/** Links whose connection takes many heartbeats for one message. */
import type { NodeId } from "../../../actors/runtime/link.ts";
import type { Timer } from "../../../actors/runtime/world.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import type { Conn } from "../../../transport/web_socket/connection.ts";
import { FramedSocket } from "../../../transport/web_socket/framed_socket.ts";
import { WebSocketLink } from "../../../transport/web_socket/link.ts";
import { assertEquals } from "../../assert.ts";
import { until } from "../../lib/until.ts";
import { bodyOf, FAR, NEAR, tellOf } from "../conformance_lib.ts";

const HEARTBEAT_MS = 3_600_000;
const SLICE_BYTES = 64 * 2 ** 10;

/** A world whose heartbeats come when the test says. */
class BeatWorld extends DenoWorld {
  #beat = () => {};

  constructor() {
    super({ logLevel: "off" });
  }

  override timer(delayMs: number, fn: () => void): Timer {
    if (delayMs !== HEARTBEAT_MS) return super.timer(delayMs, fn);
    this.#beat = fn;
    return { cancel: () => this.#beat = () => {} };
  }

  beat(): void {
    this.#beat();
  }
}

/** One direction of a connection. It takes all bytes at once, and gives as many as the test lets it. */
class Wire {
  #bytes = new Uint8Array();
  #allowed: number;
  #reader: PromiseWithResolvers<void> | undefined;
  #isClosed = false;

  constructor(allowed: number) {
    this.#allowed = allowed;
  }

  /** Whether the receiver has read what it may, and waits for more. */
  get isRead(): boolean {
    return this.#reader !== undefined && Math.min(this.#bytes.length, this.#allowed) === 0;
  }

  get isEmpty(): boolean {
    return this.#bytes.length === 0;
  }

  allow(count: number): void {
    this.#allowed += count;
    this.#reader?.resolve();
  }

  write(bytes: Uint8Array): Promise<number> {
    const all = new Uint8Array(this.#bytes.length + bytes.length);
    all.set(this.#bytes);
    all.set(bytes, this.#bytes.length);
    this.#bytes = all;
    this.#reader?.resolve();
    return Promise.resolve(bytes.length);
  }

  async read(into: Uint8Array): Promise<number | null> {
    for (;;) {
      if (this.#isClosed) return null;
      const count = Math.min(into.length, this.#bytes.length, this.#allowed);
      if (count > 0) {
        into.set(this.#bytes.subarray(0, count));
        this.#bytes = this.#bytes.slice(count);
        this.#allowed -= count;
        return count;
      }
      this.#reader = Promise.withResolvers();
      await this.#reader.promise;
      this.#reader = undefined;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#reader?.resolve();
  }
}

function connOf(read: Wire, write: Wire): Conn {
  return {
    read: (into) => read.read(into),
    write: (bytes) => write.write(bytes),
    closeWrite: () => Promise.resolve(write.close()),
    close: () => [read, write].forEach((wire) => wire.close()),
    remoteAddr: { transport: "tcp", hostname: "127.0.0.1", port: 1 },
  };
}

Deno.test("a link stays open while one message takes many heartbeats to arrive", async () => {
  const [slow, fast] = [new Wire(0), new Wire(Infinity)];
  const [near, far] = [new BeatWorld(), new BeatWorld()];
  const first = new Uint8Array();
  const linkOf = (world: BeatWorld, remote: NodeId, socket: FramedSocket) =>
    new WebSocketLink(world, socket, {
      ...{ remote, ownName: remote.node, identity: { name: "peer", role: "admin" } },
      messageBytesMax: 2 ** 30,
    }, { heartbeatMs: HEARTBEAT_MS });
  const masks = near.random.fork("masks");
  const sender = linkOf(near, FAR, new FramedSocket(near, connOf(fast, slow), { masks, first }));
  const receiver = linkOf(far, NEAR, new FramedSocket(far, connOf(slow, fast), { first }));
  const ends: string[] = [];
  for (const link of [sender, receiver]) link.closed.then(({ message }) => ends.push(message));
  const bodies: unknown[] = [];
  sender.start(() => {});
  receiver.start((envelope) => bodies.push(bodyOf(envelope)));

  sender.send(tellOf(new Uint8Array(2 ** 21)));
  await until(() => !slow.isEmpty);
  const untilRead = (wire: Wire) => until(() => wire.isRead || ends.length > 0);
  while (bodies.length === 0 && ends.length === 0) {
    slow.allow(SLICE_BYTES);
    await untilRead(slow);
    far.beat();
    await untilRead(fast);
    near.beat();
  }
  assertEquals(ends, []);
  assertEquals((bodies[0] as Uint8Array).length, 2 ** 21);
  slow.allow(Infinity);
  sender.close();
  await Promise.all([receiver.closed, sender.released, receiver.released]);
});
