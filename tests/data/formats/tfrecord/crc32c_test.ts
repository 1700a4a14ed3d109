/** CRC-32C against published values and the definition, bit by bit. */

import { assert, assertEquals } from "../../../assert.ts";
import { RandomStream } from "../../../../core/philox.ts";
import { crc32c, installCrc32c, maskedCrc32c } from "../../../../data/formats/tfrecord/crc32c.ts";
import { loadCrc32cAddon } from "../../../../platform/storage/crc32c_addon.ts";

function bitwise(bytes: Uint8Array): number {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc >>> 0;
}

Deno.test("crc32c gives the values of RFC 3720, appendix B.4", () => {
  assertEquals(crc32c(new Uint8Array(32)), 0x8a9136aa);
  assertEquals(crc32c(new Uint8Array(32).fill(0xff)), 0x62a8ab43);
  assertEquals(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e);
  assertEquals(crc32c(Uint8Array.from({ length: 32 }, (_, i) => 31 - i)), 0x113fdb5c);
});

Deno.test("crc32c gives the check value of the algorithm's catalogue", () => {
  assertEquals(crc32c(new TextEncoder().encode("123456789")), 0xe3069283);
  assertEquals(crc32c(new Uint8Array(0)), 0);
});

Deno.test("crc32c agrees with the definition at every length, alignment and part", () => {
  const random = new RandomStream(1n, ["crc"]);
  const bytes = Uint8Array.from({ length: 300 }, () => random.int(256));
  for (let start = 0; start < 20; start++) {
    for (let stop = start; stop <= 300; stop += stop < 100 ? 1 : 7) {
      const part = bytes.subarray(start, stop);
      assertEquals(crc32c(bytes, start, stop), bitwise(part), `${start} to ${stop}`);
      assertEquals(crc32c(part), bitwise(part));
    }
  }
});

Deno.test("maskedCrc32c rotates by 15 and adds the constant of the format", () => {
  const bytes = new TextEncoder().encode("123456789");
  const rotated = (0xe3069283n >> 15n | 0xe3069283n << 17n) & 0xffffffffn;
  assertEquals(BigInt(maskedCrc32c(bytes)), (rotated + 0xa282ead8n) & 0xffffffffn);
  assertEquals(maskedCrc32c(bytes, 2, 2), 0xa282ead8);
});

Deno.test("the addon of CRC-32C agrees with the tables at every length and alignment", () => {
  const addon = loadCrc32cAddon();
  assert(addon !== undefined, "there is an addon for each of Deno's platforms");
  const random = new RandomStream(2n, ["crc"]);
  const bytes = Uint8Array.from({ length: 2_000 }, () => random.int(256));
  for (let start = 0; start < 40; start++) {
    const stop = start + random.int(bytes.length - start);
    assertEquals(addon(bytes.subarray(start, stop)), crc32c(bytes, start, stop));
  }
});

Deno.test({
  name: "the addon of CRC-32C is not loaded, nor asked for, without its permission",
  permissions: { read: true },
  fn: () => assertEquals(loadCrc32cAddon(), undefined),
});

Deno.test("crc32c uses the native code for long inputs only, and loads it for the first", () => {
  const lengths: number[] = [];
  let loads = 0;
  installCrc32c(() => {
    loads++;
    const addon = loadCrc32cAddon()!;
    return (bytes) => {
      lengths.push(bytes.length);
      return addon(bytes);
    };
  });
  const bytes = new Uint8Array(1_000).fill(7);
  assertEquals(crc32c(bytes, 5, 15), bitwise(bytes.subarray(5, 15)));
  assertEquals(loads, 0);
  for (let i = 0; i < 2; i++) assertEquals(crc32c(bytes, 5, 905), bitwise(bytes.subarray(5, 905)));
  assertEquals(loads, 1);
  assertEquals(lengths, [900, 900]);
});
