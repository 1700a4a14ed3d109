/** The memory of elements that a training loop may free early. */

/** Frees memory that nothing else uses. */
export interface ElementMemory {
  /** Frees the memory at once: tensors of the element, and other views of the memory, become empty. */
  release(): void;
  /** Lets another element use the memory, if nothing refers to this one. Default: `release`. */
  reuse?(): void;
}

const memories = new WeakMap<object, ElementMemory>();

/** Notes the memory of an element. All tensors of the element must be views of it. */
export function noteMemory(element: unknown, memory: ElementMemory): void {
  if (typeof element === "object" && element !== null) memories.set(element, memory);
}

/** Notes that an operator keeps an element: `releaseElement` then does nothing for it. */
export function keepMemory(element: unknown): void {
  if (typeof element === "object" && element !== null) memories.delete(element);
}

/**
 * Frees at once the memory of an element from `distribute()`, or of a batch that images were
 * decoded to. Without this call, the garbage collector frees the memory later. Batches of 1 MB and
 * more make the collector run often, which takes about half of the time that the trainer's process
 * spends on receiving them. The memory of a batch of images is used for the next one.
 *
 * Call it once nothing uses the element any more, such as at the end of a training step. Its
 * tensors, and other views of their memory, are empty then. It does nothing for elements of a
 * service that are smaller than 64 KiB, for other elements that `map`, `batch` and so on made in
 * this process, and for elements that `cache()`, `flatMap` and `interleave` keep.
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
 * Like `releaseElement`, but does not empty the tensors: nothing may refer to them, or to views of
 * them. To empty a tensor makes the engine count its memory again, and so collect garbage after
 * each batch of 64 MB and more.
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
