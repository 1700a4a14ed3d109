/**
 * The job that `deno task chaos` runs: everything that could come out differently when a worker dies
 * is in it, and its stream comes down to one number.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { Dataset, type Tensor } from "../../mod.ts";
import { openHome, registerHome } from "../../world/client_homes.ts";
import type { Deployment } from "../cluster/deployment.ts";

const BATCH_SIZE = 32;
const SHUFFLE_BUFFER = 64;
/** What a batch takes with its envelope, at most, in bytes. */
const BATCH_BYTES_MAX = 1_024;
/** Requests that a reader has open to one task, and tasks of a worker that it may know of at once. */
const OPEN_PER_WORKER = 4;

/** What the reader may hold: so little that it is full most of the time. */
export const WINDOW = {
  splits: 32,
  bytes: 8 * 1_024,
  /** With what was asked for before it was full. */
  bytesWith: (workers: number): number =>
    WINDOW.bytes + workers * OPEN_PER_WORKER * BATCH_BYTES_MAX,
};

/** Lets this process read from the deployment, under an address, with that window. */
export function openReaderHome(
  { dispatcher, token }: Deployment,
): { readonly address: string } & Disposable {
  const address = `chaos ${new URL(dispatcher.address).port}`;
  const forget = registerHome(address, () => {
    const home = openHome(dispatcher.address, { token });
    return { ...home, timings: { ...home.timings, bufferBytesMax: WINDOW.bytes } };
  });
  return { address, [Symbol.dispose]: forget };
}

/** How much there is to do. */
export interface JobSize {
  readonly elements: number;
  /** Steps of computation per element, a few nanoseconds each. */
  readonly work: number;
}

/** Shuffled, with luck of each element, a filter that leaves splits of many lengths, and batches. */
export function chaosJob(
  { elements, work }: JobSize,
  service: string,
): Dataset<Tensor> {
  return Dataset.range(elements)
    .shuffle(SHUFFLE_BUFFER)
    .map((x, { random, work }) => {
      let value = x;
      for (let i = 0; i < work; i++) value = (Math.imul(value, 1_664_525) + 1_013_904_223) | 0;
      return x + (value >>> 8) / 2 ** 26 + random.next() / 4;
    }, { captures: { work } })
    .filter((x) => Math.floor(x) % 7 !== 0)
    .batch(BATCH_SIZE)
    .distribute({ service, processingMode: "DETERMINISTIC" });
}

/** The stream so far, as one number. */
export class StreamDigest {
  readonly #hash = createHash("sha256");
  batches = 0;

  add({ shape, dtype, data }: Tensor): void {
    this.batches++;
    this.#hash.update(`${dtype} ${shape} `);
    const { buffer, byteOffset, byteLength } = data as Float64Array;
    this.#hash.update(new Uint8Array(buffer, byteOffset, byteLength));
  }

  /** The beginning of the SHA-256 of shapes, dtypes and values. Ends the digest. */
  end(): string {
    return this.#hash.digest("hex").slice(0, 16);
  }
}
