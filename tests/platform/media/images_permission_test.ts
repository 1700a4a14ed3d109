/** Alone in its file, because a loaded library stays for all tests of the process. */

import { assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { Images } from "../../../platform/media/images.ts";

/** The first bytes of a JPEG of 24 × 16, up to its frame header. */
const HEADER = Uint8Array.fromHex("ffd8ffc0001108001000180301220002110103110100ffd9");

Deno.test({
  name: "Images without permission refuses to decode, names the remedy, and still reads sizes",
  permissions: { read: true, ffi: false },
  fn: async () => {
    const images = new Images();
    assertEquals(images.size(HEADER), { width: 24, height: 16 });
    const error = await assertRejects(async () => await images.decode(HEADER), LeatError);
    assertEquals((error as LeatError).code, "permission_denied");
    assertStringIncludes((error as LeatError).message, "--allow-ffi");
  },
});
