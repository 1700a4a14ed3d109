/**
 * The job that `deno task chaos` runs: everything that could come out differently when a worker dies
 * is in it, and its stream comes down to one number.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { Dataset, type DistributeOptions, type Tensor } from "../../mod.ts";

const BATCH_SIZE = 32;
const SHUFFLE_BUFFER = 64;

/** How much there is to do. */
export interface JobSize {
  readonly elements: number;
  /** Steps of computation per element, a few nanoseconds each. */
  readonly work: number;
}

/** Shuffled, with luck of each element, a filter that leaves splits of many lengths, and batches. */
export function chaosJob(
  { elements, work }: JobSize,
  options: Pick<DistributeOptions, "service" | "token">,
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
    .distribute({ ...options, processingMode: "DETERMINISTIC" });
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
