/** CRC-32C against published values and the definition, bit by bit. */

import { assertEquals } from "../../../assert.ts";
import { RandomStream } from "../../../../core/philox.ts";
import { crc32c, maskedCrc32c } from "../../../../data/formats/tfrecord/crc32c.ts";

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
  const bytes = Uint8Array.from({ length: 100 }, () => random.int(256));
  for (let start = 0; start < 20; start++) {
    for (let stop = start; stop <= 100; stop++) {
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
