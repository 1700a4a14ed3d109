/**
 * Measures, alternately, the bare operations that limit Leat in the comparison with its peers: reading
 * and checking records, compressing, copying and sending an element, and making a commit durable.
 *
 * ```sh
 * deno run -P=bench bench/costs/limits.ts
 * ```
 */
import { Buffer } from "node:buffer";
import { DatabaseSync } from "node:sqlite";
import zlib from "node:zlib";
import turbo from "@julusian/jpeg-turbo";
import { loadCrc32cAddon } from "../../platform/storage/crc32c_addon.ts";
import { median } from "../bare/load.ts";
import { COUNT, photographs } from "../bare/jpeg_addon.ts";

const ROUNDS = 7;
const WINDOW_MS = 150;
const RECORD_BYTES = 108_000;
const FILE_BYTES = 512 * RECORD_BYTES;
const ELEMENT_BYTES = 1_000_000;

const folder = await Deno.makeTempDir();
const path = `${folder}/records`;
await Deno.writeFile(path, new Uint8Array(FILE_BYTES).fill(7));
const file = Deno.openSync(path);
const crc32c = loadCrc32cAddon() ?? (() => 0);

/** Reads the next record of the file, which is in the page cache. */
function read(into: Uint8Array): Uint8Array {
  if (file.readSync(into) !== into.length) {
    file.seekSync(0, Deno.SeekMode.Start);
    file.readSync(into);
  }
  return into;
}

const reused = new Uint8Array(RECORD_BYTES);
const element = Uint8Array.from({ length: ELEMENT_BYTES }, (_, i) => (i * 7 + (i >> 8)) & 255);
const target = new Uint8Array(ELEMENT_BYTES);
const { ZSTD_c_compressionLevel: level, ZSTD_c_checksumFlag: checksum } = zlib.constants;
const options = { params: { [level]: 1, [checksum]: 1 }, chunkSize: 2 ** 17 };
const compressed = zlib.zstdCompressSync(element, options);
const journal = new DatabaseSync(`${folder}/journal`);
journal.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE log (entry)");
const append = journal.prepare("INSERT INTO log VALUES (?)");
const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
const accepted = listener.accept();
const sender = await Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port });
const receiver = await accepted;
const IMAGE_BYTES = 500 * 375 * 3;
const [jpegs, pixels] = [photographs(), Buffer.alloc(IMAGE_BYTES)];
const image = new Uint8Array(IMAGE_BYTES);
let next = 0;

const OPERATIONS: Readonly<Record<string, () => unknown>> = {
  "a record, read to one buffer": () => read(reused),
  "a record, read to a new buffer": () => read(new Uint8Array(RECORD_BYTES)),
  "a record, its checksum": () => crc32c(reused),
  "a record, read to a new buffer, and its checksum": () =>
    crc32c(read(new Uint8Array(RECORD_BYTES))),
  "a JPEG of 500 × 375, decoded by the addon": () =>
    turbo.decompressSync(Buffer.from(jpegs[next++ % COUNT]!), pixels, {
      format: turbo.FORMAT_RGB,
    }),
  "the pixels of an image, copied to one buffer": () => image.set(pixels),
  "the pixels of an image, copied to a new buffer": () => new Uint8Array(pixels),
  "the pixels of an image, copied to a new buffer that is freed at once": () =>
    new Uint8Array(pixels).buffer.transfer(0),
  "1 MB, copied": () => target.set(element),
  "1 MB, compressed with zstd": () => zlib.zstdCompressSync(element, options),
  "1 MB, decompressed with zstd": () =>
    zlib.zstdDecompressSync(compressed, { chunkSize: ELEMENT_BYTES }),
  "1 MB, over one TCP connection within this process": async () => {
    const writing = (async () => {
      for (let sent = 0; sent < element.length;) sent += await sender.write(element.subarray(sent));
    })();
    for (let received = 0; received < target.length;) {
      received += (await receiver.read(target.subarray(received)))!;
    }
    await writing;
  },
  "a commit of one row, synced": () => append.run(1),
};

const times = new Map(Object.keys(OPERATIONS).map((name): [string, number[]] => [name, []]));
for (let round = 0; round <= ROUNDS; round++) {
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    let count = 0;
    const startedAtMs = performance.now();
    let tookMs = 0;
    do {
      const pending = operation();
      if (pending instanceof Promise) await pending;
      count++;
      tookMs = performance.now() - startedAtMs;
    } while (tookMs < WINDOW_MS);
    // The first round warms up.
    if (round > 0) times.get(name)!.push(1_000 * tookMs / count);
  }
}
for (const [name, all] of times) console.log(`${median(all).toFixed(0).padStart(6)} µs  ${name}`);
sender.close();
receiver.close();
listener.close();
journal.close();
file.close();
await Deno.remove(folder, { recursive: true });
