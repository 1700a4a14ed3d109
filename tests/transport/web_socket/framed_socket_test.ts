/** A socket whose connection is closed from elsewhere. */
import { FramedSocket } from "../../../transport/web_socket/framed_socket.ts";
import { PLACED_HEAD_BYTES } from "../../../transport/web_socket/socket.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { buffersBeingWritten, Payload } from "../../../transport/payload.ts";
import { assert, assertEquals } from "../../assert.ts";
import { until } from "../../lib/until.ts";

/** A connection within this process; the test closes both ends. */
async function connection(): Promise<{ near: Deno.TcpConn; far: Deno.TcpConn }> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const [near, far] = await Promise.all([
    Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port }),
    listener.accept(),
  ]);
  return { near, far };
}

for (const when of ["before it reads", "while it reads"] as const) {
  Deno.test(`FramedSocket is closed and released when its connection is closed ${when}`, async () => {
    const { near, far } = await connection();
    using _far = far;
    // A listener that stops closes the connections without a link.
    if (when === "before it reads") near.close();
    const first = new Uint8Array();
    const socket = new FramedSocket(new DenoWorld({ logLevel: "off" }), near, { first });
    const closed = Promise.withResolvers<boolean>();
    socket.listen({ message: () => {}, closed: (_why, isByPeer) => closed.resolve(isByPeer) });
    if (when === "while it reads") near.close();
    assertEquals(await closed.promise, false);
    await socket.released;
    socket.drop();
  });
}

Deno.test("FramedSocket closes its connection rather than send other bytes than it was given", async () => {
  const { near, far } = await connection();
  const world = new DenoWorld({ logLevel: "off" });
  const sender = new FramedSocket(world, near, { first: new Uint8Array() });
  const masks = world.random.fork("masks");
  const receiver = new FramedSocket(world, far, { masks, first: new Uint8Array() });
  const came: Uint8Array[] = [];
  const ended = (socket: FramedSocket) =>
    new Promise<void>((resolve) => {
      socket.listen({
        message: (data) => void came.push(data as Uint8Array),
        closed: () => resolve(),
      });
    });
  const sent = ended(sender);
  sender.send(Uint8Array.of(1, 2, 3));
  // The connection holds some, and the others wait in this process.
  const messages = Array.from({ length: 16 }, (_, i) => new Uint8Array(4 * 2 ** 20).fill(i));
  for (const message of messages) sender.send(message);
  await until(() => messages.some(({ buffer }) => buffersBeingWritten.has(buffer)));
  const recycled: ArrayBuffer[] = [];
  const recycle = (buffer: ArrayBuffer) => void recycled.push(buffer);
  for (const message of messages) new Payload(message, { recycle }).release();
  // The memory of the one that the system is sending is not used again.
  assertEquals(recycled.length, 15);
  for (const buffer of recycled) new Uint8Array(buffer).fill(255);
  await Promise.all([sent, ended(receiver)]);
  const [first, ...large] = came;
  assertEquals(first, Uint8Array.of(1, 2, 3));
  assert(large.length < messages.length);
  large.forEach((message, i) => assert(message.every((byte) => byte === i)));
});

Deno.test("FramedSocket reads a large message to where its receiver wants it", async () => {
  const { near, far } = await connection();
  const world = new DenoWorld({ logLevel: "off" });
  const sender = new FramedSocket(world, near, { first: new Uint8Array() });
  const masks = world.random.fork("masks");
  const receiver = new FramedSocket(world, far, { masks, first: new Uint8Array() });
  const sizes = [2 ** 20, 5, 2 ** 20, 300_000, 150_000];
  const wanted = new Uint8Array(2 ** 21);
  const came: [string, number][] = [];
  const all = Promise.withResolvers<void>();
  const note = (how: string, length: number) => {
    came.push([how, length]);
    if (came.length === sizes.length) all.resolve();
  };
  receiver.listen({
    message(data) {
      const bytes = data as Uint8Array;
      assert(bytes.every((byte) => byte === came.length));
      note("message", bytes.length);
    },
    place: (head, byteLength) =>
      head[0] === 2 || head[0] === 4
        ? wanted.subarray(1, 1 + byteLength - PLACED_HEAD_BYTES)
        : undefined,
    placed(head, rest) {
      assertEquals(rest.buffer, wanted.buffer);
      for (const bytes of [head, rest]) assert(bytes.every((byte) => byte === came.length));
      note("placed", head.length + rest.length);
    },
    closed: () => {},
  });
  const ended = new Promise<void>((resolve) => {
    sender.listen({ message: () => {}, closed: () => resolve() });
  });
  for (const [i, size] of sizes.entries()) sender.send(new Uint8Array(size).fill(i));
  await all.promise;
  assertEquals(came.map(([how]) => how), ["message", "message", "placed", "message", "placed"]);
  assertEquals(came.map(([, length]) => length), sizes);
  assertEquals([wanted[0], wanted[1], wanted[sizes[4]!]], [0, 4, 2]);
  receiver.close();
  await ended;
  await receiver.released;
});
