/**
 * Checks what training loops were given: each element of a range at most once, or exactly once.
 *
 * @module
 */
import type { Violations } from "./checker.ts";

/** One element that a training loop took. */
export interface DeliveredElement {
  readonly element: unknown;
  readonly consumer: string;
  readonly timeMs: number;
}

/** Watches the deliveries of one iteration over `Dataset.range(count)`, to all its consumers together. */
export class DeliveryChecker {
  readonly #count: number;
  readonly #first = new Map<unknown, DeliveredElement>();
  readonly #violations: Violations;

  constructor(count: number, violations: Violations) {
    this.#count = count;
    this.#violations = violations;
  }

  /** Elements delivered so far, repetitions not counted. */
  get delivered(): number {
    return this.#first.size;
  }

  /** An element has reached a training loop. */
  took(delivery: DeliveredElement): void {
    const { element } = delivery;
    if (
      !Number.isSafeInteger(element) || !(0 <= Number(element) && Number(element) < this.#count)
    ) {
      this.#violations.add(`${describe(delivery)}, which is no element of the dataset`);
    }
    const first = this.#first.get(element);
    if (first === undefined) this.#first.set(element, delivery);
    else this.#violations.add(`${describe(delivery)}, and before that ${describe(first)}`);
  }

  /** Everything is over, and nothing has crashed: every element must have been delivered. */
  expectAll(): void {
    const missing: number[] = [];
    for (let element = 0; element < this.#count; element++) {
      if (!this.#first.has(element)) missing.push(element);
    }
    if (missing.length > 0) this.#violations.add(`elements never delivered: ${missing.join(", ")}`);
  }
}

function describe({ element, consumer, timeMs }: DeliveredElement): string {
  return `${consumer} took element ${element} at ${timeMs.toFixed(3)} ms`;
}
