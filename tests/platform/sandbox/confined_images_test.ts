/** Images of a confined pipeline, which its host process decodes. */
import { CONFINED_ASK_BYTES_MAX } from "../../../platform/sandbox/edge.ts";
import { ConfinedHost } from "../../../platform/sandbox/host/confined_host.ts";
import { bodyBytes } from "../../../transport/limits.ts";
import { assert, assertEquals } from "../../assert.ts";

const IMAGE = new Uint8Array(5_000_000);
const DECODED = { dtype: "uint8", shape: [1], data: Uint8Array.of(7) };

Deno.test("ConfinedHost decodes as many images at once as its worker accepts, and the others later", async () => {
  let [open, openMax, bytes, bytesMax] = [0, 0, 0, 0];
  const ask = async (_: string, args: unknown) => {
    openMax = Math.max(openMax, ++open);
    bytesMax = Math.max(bytesMax, bytes += bodyBytes(args));
    await new Promise((resolve) => setTimeout(resolve));
    open--;
    bytes -= bodyBytes(args);
    return DECODED;
  };
  const refuse = () => Promise.reject(new Error("nothing is imported or called"));
  const { images } = new ConfinedHost(ask, refuse, undefined as never, [], 0);
  const decoded = await Promise.all(Array.from({ length: 64 }, () => images.decode(IMAGE)));
  assertEquals(decoded.map(({ data }) => data[0]), Array(64).fill(7));
  assertEquals(openMax, 26);
  assert(bytesMax <= CONFINED_ASK_BYTES_MAX, `${bytesMax} bytes`);
});
