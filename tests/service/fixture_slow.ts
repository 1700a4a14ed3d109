/** A function that takes its time without using a core, so that workers on one host do not slow each other. */

/** The element, five milliseconds later. */
export function slowly<T>(element: T): Promise<T> {
  return new Promise((resolve) => setTimeout(() => resolve(element), 5));
}
