/**
 * The results of an iterator in a comparable form: elements as plain data, and errors by code and
 * message.
 */
import { LeatError } from "../../../core/error.ts";
import { RaggedTensor, Tensor } from "../../../core/tensor.ts";
import { Dataset, type DatasetIterator } from "../../../data/mod.ts";

/** One result of `next()` before the end. */
export type Outcome = { readonly element: unknown } | { readonly error: string };

/** The remaining results of an iterator, at most `countMax`. */
export async function outcomesOf(
  iterator: DatasetIterator<unknown>,
  countMax = Infinity,
): Promise<Outcome[]> {
  return await readOutcomes(iterator, countMax);
}

/** The next `count` results, fewer at the end. */
export async function readOutcomes(
  iterator: DatasetIterator<unknown>,
  count: number,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  while (outcomes.length < count) {
    try {
      const { done, value } = await iterator.next();
      if (done) break;
      outcomes.push({ element: await plain(value) });
    } catch (error) {
      const { code, message } = LeatError.from(error);
      outcomes.push({ error: `${code}: ${message}` });
    }
  }
  return outcomes;
}

/** Tensors with their dtype and shape, datasets as their elements. */
export async function plain(value: unknown): Promise<unknown> {
  if (value instanceof Dataset) return { dataset: await outcomesOf(value.iterator()) };
  if (value instanceof RaggedTensor) return { ragged: value.toArray(), dtype: value.values.dtype };
  if (value instanceof Tensor) {
    return { dtype: value.dtype, shape: [...value.shape], data: value.toArray() };
  }
  if (ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) return await Promise.all(value.map(plain));
  if (typeof value === "object" && value !== null) {
    const parts = Object.entries(value).map(async ([key, part]) => [key, await plain(part)]);
    return Object.fromEntries(await Promise.all(parts) as [string, unknown][]);
  }
  return value;
}
