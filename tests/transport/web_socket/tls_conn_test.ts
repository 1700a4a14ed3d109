/** TLS on accepted connections: what a reader gets of a connection that ends. */
import { securedBy } from "../../../transport/web_socket/http/tls_conn.ts";
import { assertEquals } from "../../assert.ts";
import { certificates } from "./strangers.ts";

Deno.test("TlsConn.read reports the end that comes with the last bytes", async () => {
  const [cert, key, ca] = await certificates();
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  const dialling = Deno.connectTls({ hostname: "localhost", port, caCerts: [ca] });
  const conn = securedBy({ cert, key })(await listener.accept());
  const bytes = new Uint8Array(1);
  const first = conn.read(bytes);
  const far = await dialling;
  await far.write(new TextEncoder().encode("hello"));
  far.close();
  const counts = [await first];
  while (counts.at(-1) !== null) counts.push(await conn.read(bytes));
  assertEquals(counts, [1, 1, 1, 1, 1, null]);
  conn.close();
});
