/** Opens connections and resets them: `fixture_resets.ts PORT COUNT`. */
import { connect } from "node:net";
import { once } from "node:events";

const [port, count] = Deno.args.map(Number) as [number, number];
for (let i = 0; i < count; i++) {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.resetAndDestroy();
  await once(socket, "close");
}
