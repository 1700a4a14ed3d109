/**
 * A socket whose connection is closed from elsewhere.
 *
 * @module
 */
import { FramedSocket } from "../../transport/web_socket/framed_socket.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { assertEquals } from "../assert.ts";

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
    assertEquals(socket.isOpen, false);
    await socket.released;
    socket.drop();
  });
}
