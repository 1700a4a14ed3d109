/**
 * Checks that training loops receive each element of a range at most a number of times, and at the end
 * at least a number of times.
 */
import type { Findings } from "./checker.ts";

/** One element that a training loop received. */
interface DeliveredElement {
  readonly element: unknown;
  readonly consumer: string;
  readonly timeMs: number;
}

/**
 * Watches the deliveries of one iteration over `Dataset.range(count)` to all its consumers
 * together.
 */
export class DeliveryChecker {
  readonly #count: number;
  readonly #timesMax: number;
  readonly #taken = new Map<unknown, DeliveredElement[]>();
  readonly #findings: Findings;

  /** @param timesMax Maximum number of deliveries of each element. */
  constructor(count: number, findings: Findings, timesMax = 1) {
    this.#count = count;
    this.#timesMax = timesMax;
    this.#findings = findings;
  }

  /** Number of different elements delivered so far. */
  get delivered(): number {
    return this.#taken.size;
  }

  /** Records that a training loop received an element. */
  took(delivery: DeliveredElement): void {
    const { element } = delivery;
    if (
      !Number.isSafeInteger(element) || !(0 <= Number(element) && Number(element) < this.#count)
    ) {
      this.#findings.add(`${describe(delivery)}, which is no element of the dataset`);
    }
    const before = this.#taken.get(element) ?? [];
    this.#taken.set(element, [...before, delivery]);
    if (before.length < this.#timesMax) return;
    this.#findings.add(`${describe(delivery)}, and before that ${describe(before.at(-1)!)}`);
  }

  /** Returns the elements that were delivered less than `times` times. */
  missing(times = 1): number[] {
    const elements = Array.from({ length: this.#count }, (_, element) => element);
    return elements.filter((element) => (this.#taken.get(element)?.length ?? 0) < times);
  }

  /** Checks at the end that every element was delivered at least `times` times. */
  expectAll(times = 1): void {
    const missing = this.missing(times);
    if (missing.length === 0) return;
    this.#findings.add(`elements delivered less than ${times} times: ${missing.join(", ")}`);
  }
}

function describe({ element, consumer, timeMs }: DeliveredElement): string {
  return `${consumer} took element ${element} at ${timeMs.toFixed(3)} ms`;
}
