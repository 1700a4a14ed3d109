/** The memory of elements that a training loop may free early. */

/** Frees memory that nothing else uses. */
export interface ElementMemory {
  /** Frees the memory at once: tensors of the element, and other views of the memory, become empty. */
  release(): void;
  /** Lets another element use the memory. Only if nothing refers to this one. Left out: as `release`. */
  reuse?(): void;
}

const memories = new WeakMap<object, ElementMemory>();

/** Notes the memory of an element, all of whose tensors are views of it. */
export function noteMemory(element: unknown, memory: ElementMemory): void {
  if (typeof element === "object" && element !== null) memories.set(element, memory);
}

/** Notes that an operator keeps an element: `releaseElement` then does nothing for it. */
export function keepMemory(element: unknown): void {
  if (typeof element === "object" && element !== null) memories.delete(element);
}

/**
 * Frees the memory of an element that `distribute()` gave, or of a batch that images were decoded
 * to, at once. Without it, the garbage collector frees the memory later. Batches of 1 MB and more
 * make it run often, which takes about half of the time that the trainer's process spends on
 * receiving them. The memory of a batch of images is used for the next one.
 *
 * Call it once nothing uses the element any more, such as at the end of a training step. Its
 * tensors, and other views of their memory, are empty then. It does nothing for other elements:
 * those of a service that are smaller than 64 KiB, others that `map`, `batch` and so on made in
 * this process, and those that `cache()`, `flatMap` and `interleave` keep.
 *
 * @example
 * ```ts
 * import { Dataset, LocalCluster, releaseElement } from "../../mod.ts";
 *
 * await using cluster = await LocalCluster.start({ workers: 1 });
 * for await (const batch of Dataset.range(10).batch(5).distribute({ service: cluster })) {
 *   console.log(batch.toArray());
 *   releaseElement(batch);
 * }
 * ```
 */
export function releaseElement(element: unknown): void {
  take(element)?.release();
}

/**
 * Like `releaseElement`, for an element to whose tensors and their views nothing refers any more: they
 * are not emptied. Emptying them makes the engine collect garbage after each batch of 64 MB and more,
 * because it counts their memory again.
 */
export function reuseElement(element: unknown): void {
  const memory = take(element);
  if (memory?.reuse === undefined) memory?.release();
  else memory.reuse();
}

function take(element: unknown): ElementMemory | undefined {
  if (typeof element !== "object" || element === null) return undefined;
  const memory = memories.get(element);
  memories.delete(element);
  return memory;
}
