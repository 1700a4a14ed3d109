/** The canonical stream of a pipeline, in a comparable form. */
import { LeatError } from "../../../core/error.ts";
import { Dataset } from "../../../mod.ts";
import { type CanonicalOptions, canonicalStream } from "../../../sim/reference/canonical_stream.ts";
import { type Outcome, plain } from "./outcomes.ts";

/** The canonical stream of a dataset that is one chain. */
export async function orderedReference(
  dataset: Dataset<unknown>,
  options?: CanonicalOptions,
): Promise<Outcome[]> {
  const given = await canonicalStream(dataset, options);
  return await Promise.all(given.map(async (at) => {
    if ("element" in at) return { element: await plain(at.element) };
    const { code, message } = LeatError.from(at.error);
    return { error: `${code}: ${message}` };
  }));
}

/** Splits of three rows; those of every fourth split have another shape than all others. */
export function withMisfits(): Dataset<unknown> {
  return Dataset.range(768).filter((x) => x >= 0)
    .map((x) => new Float32Array(Math.floor(x / 3) % 4 === 1 ? 3 : 2).fill(x)).batch(4);
}
