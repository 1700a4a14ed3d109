/** The default memory of sharing windows on a machine. */
import { defaultWindowBytes } from "../../server/window_memory.ts";
import { assert, assertEquals } from "../assert.ts";

Deno.test("windows take 10 GiB or a quarter of the memory together, whichever is less", () => {
  const { total } = Deno.systemMemoryInfo();
  const bytes = defaultWindowBytes();
  assert(bytes > 0 && bytes <= Math.min(10 * 2 ** 30, total / 4), `${bytes} of ${total} bytes`);
  assertEquals(defaultWindowBytes(4), Math.floor(bytes / 4));
});

Deno.test({
  name: "windows take 1 GiB where the program may not ask for the memory, and ask nobody",
  permissions: { sys: false },
  fn: () => assertEquals(defaultWindowBytes(), 2 ** 30),
});
