/** Runs pipelines in tests. */

import { isTypedArray } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { Tensor } from "../../../core/tensor.ts";
import { isPlainObject } from "../../../core/tree.ts";
import { installHost } from "../../../data/host.ts";
import type { Dataset } from "../../../data/mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";

installHost(new DenoHost());

/** All elements, tensors and typed arrays as nested arrays. */
export async function collect(dataset: Dataset<unknown>): Promise<unknown[]> {
  const elements: unknown[] = [];
  for await (const element of dataset) elements.push(plain(element));
  return elements;
}

/** All elements; error codes in place of failed ones. */
export async function collectWithErrors(dataset: Dataset<unknown>): Promise<unknown[]> {
  await using iterator = dataset.iterator();
  const answers: unknown[] = [];
  for (;;) {
    try {
      const { done, value } = await iterator.next();
      if (done) return answers;
      answers.push(plain(value));
    } catch (error) {
      answers.push(`error ${LeatError.from(error).code}`);
    }
  }
}

/** Tensors and typed arrays as nested arrays. */
export function plain(element: unknown): unknown {
  if (element instanceof Tensor) return element.toArray();
  if (isTypedArray(element)) return [...element as Iterable<unknown>];
  if (Array.isArray(element)) return element.map(plain);
  if (!isPlainObject(element)) return element;
  return Object.fromEntries(Object.entries(element).map(([key, part]) => [key, plain(part)]));
}

/** Throws on these numbers and returns the others. */
export function failingOn(...numbers: number[]): (x: number) => number {
  return (x) => {
    if (numbers.includes(x)) throw new LeatError("data_loss", `no ${x}`);
    return x;
  };
}

/** Lets timers and I/O run. */
export function turn(ms = 0): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Runs that many turns of the event loop. */
export async function rounds(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}
