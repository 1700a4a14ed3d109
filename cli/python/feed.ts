/** One pass over a dataset, sent to a Python program in the answers to its `take` requests. */
import { isDetached } from "../../core/bytes.ts";
import { type DType, dtypeOf, type TypedArray } from "../../core/dtype.ts";
import { LeatError, type WireError } from "../../core/error.ts";
import { RaggedTensor, Tensor, utf8Length } from "../../core/tensor.ts";
import type { DatasetIterator } from "../../data/dataset_iterator.ts";
import type { Explanation } from "../../data/explanation.ts";
import { reuseElement } from "../../data/elements/released.ts";
import { areBools, TENSOR_RANK_MAX } from "../../transport/codec/format.ts";
import { MessagePlan } from "../../transport/codec/plan.ts";
import { type Snapshot, Snapshots } from "./snapshots.ts";
import { withStack } from "./error_stack.ts";

/**
 * An answer with this many bytes takes no more elements, and an element of this size gets its own
 * answer. So an answer of several elements fits the pipe (64 KiB) and needs no slot.
 */
const ANSWER_BYTES = 32 * 2 ** 10;
/** Limit of an element's bytes. Its slot has 1 MiB more. */
const ELEMENT_BYTES_MAX = 2 ** 30;
/** Limit of an element's nesting. A message may nest 128 deep, and wraps elements in a map and a list. */
const DEPTH_MAX = 120;
/** Limit of the length of an axis of a tensor in a message. */
const AXIS_MAX = 2 ** 32 - 1;
/** What a payload takes in a message besides its bytes, at most: a reference, and space to align it. */
const PAYLOAD_BYTES = 80;
/** What a text or a key takes in a message besides its bytes, at most. */
const TEXT_BYTES = 5;
/** Limit of the elements of a numpy array: numpy counts bytes, up to 8 per element, in 63 bits. */
const ARRAY_ELEMENTS_MAX = 2 ** 60;
/** Limit of the elements of an answer. */
const ANSWER_ELEMENTS_MAX = 256;
/** An answer takes another element only if all its elements are expected to take less time, in ms. */
const ANSWER_MS = 1;

/**
 * The answer to `take`. It has the position before its elements, or, after the end, the last
 * position.
 */
interface Taken extends Snapshot {
  readonly elements: unknown[];
  /** The error of the element after these. */
  readonly error?: WireError;
  /** Whether reading failed, and not an element: the failure is no part of the stream. */
  readonly hasReadingFailed?: true;
  /** Whether there is no element after these. */
  readonly end?: true;
}

type Result = IteratorResult<unknown, undefined>;

/** Takes elements from an iterator, one answer after another. */
export class Feed {
  readonly iteration: number;
  readonly #iterator: DatasetIterator<unknown>;
  readonly #reuses: boolean;
  readonly #snapshots: Snapshots;
  /** Whether `beginning()` has saved the current position: nothing has been taken since. */
  #isAtBeginning = false;
  /** The result of `next()` for the next answer: it was too late or too large for the last answer. */
  #pending: Promise<Result> | undefined;
  /** Whether the saved position is after the pending element: the next answer ends with it. */
  #isNextSaved = false;
  /** Mean time of an element of the last answer, in ms. Initially so high that an answer has one element. */
  #tookMs = ANSWER_MS;
  /** The elements of answers that the program has not reported as received, oldest first. */
  readonly #sent: unknown[][] = [];
  #released = 0;
  /** Settles when the last request is answered. Requests are answered one after another. */
  #last: Promise<unknown> = Promise.resolve();

  /**
   * @param reuses Whether an element's memory may be used again once the program has received it.
   * @param isOrdered Whether a restored iterator gives the same elements in the same order.
   */
  constructor(
    iteration: number,
    iterator: DatasetIterator<unknown>,
    reuses: boolean,
    isOrdered = true,
  ) {
    this.iteration = iteration;
    this.#iterator = iterator;
    this.#reuses = reuses;
    this.#snapshots = new Snapshots(iterator, isOrdered);
  }

  /** Continues from a saved position, before anything is taken. */
  restore(state: Uint8Array): Promise<void> {
    return this.#iterator.restore(state);
  }

  /**
   * Drops elements that the program received before a restart. Failed elements count, too.
   * @throws {LeatError} if reading fails.
   */
  async skip(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const result = await this.#iterator.next().catch((error) => {
        if (this.#iterator.hasReadingFailed) throw error;
      });
      if (result?.done === true) return;
    }
  }

  /** Saves the position of the first element. */
  beginning(): Promise<Snapshot> {
    this.#isAtBeginning = true;
    return this.#snapshots.take();
  }

  /**
   * Takes the next elements.
   * @param received How many answers to this method the program has received.
   */
  take(received: number): Promise<Taken> {
    for (; this.#released < received; this.#released++) {
      const elements = this.#sent.shift() ?? [];
      if (this.#reuses) elements.forEach(reuseElement);
    }
    return this.#inOrder(async () => {
      let elements: unknown[] = [];
      try {
        const taken = await this.#take();
        elements = taken.elements;
        return taken;
      } finally {
        this.#sent.push(elements);
      }
    });
  }

  /**
   * Saves the position after all answers. If `next()` is computing an element, this waits for it, the
   * position is the one after it, and the next answer to `take` has only this element (`isNextBefore`).
   */
  save(): Promise<{ readonly after: Uint8Array; readonly isNextBefore: boolean }> {
    return this.#inOrder(async () => {
      await this.#pending?.catch(() => {});
      const after = await this.#iterator.save();
      this.#isNextSaved = this.#pending !== undefined;
      return { after, isNextBefore: this.#isNextSaved };
    });
  }

  explain(): Explanation {
    return this.#iterator.explain();
  }

  async close(): Promise<void> {
    await this.#iterator.return();
  }

  #inOrder<T>(run: () => Promise<T>): Promise<T> {
    const running = this.#last.then(run);
    this.#last = running.catch(() => {});
    return running;
  }

  async #take(): Promise<Taken> {
    const elements: unknown[] = [];
    let elementsMax = this.#isNextSaved ? 1 : ANSWER_ELEMENTS_MAX;
    this.#isNextSaved = false;
    let saved: Snapshot = {};
    if (!this.#isAtBeginning && this.#snapshots.isDue) {
      // While `next()` computes an element, no position can be saved. This answer takes only that element,
      // so that the next answer can save.
      if (this.#pending === undefined) saved = await this.#snapshots.take();
      else elementsMax = 1;
    }
    this.#isAtBeginning = false;
    const startedAtMs = performance.now();
    const tookMs = this.#tookMs;
    let byteLength = 0;
    try {
      do {
        const result = await this.#next(elements.length === 0);
        if (result === undefined) break;
        if (result.done) {
          return { elements, end: true, ...saved, ...await this.#lastState(elements) };
        }
        const size = sendableSize(result.value);
        if (size >= ANSWER_BYTES && elements.length > 0) {
          this.#pending = Promise.resolve(result);
          break;
        }
        byteLength += size;
        elements.push(result.value);
        this.#tookMs = (performance.now() - startedAtMs) / elements.length;
      } while (
        byteLength < ANSWER_BYTES && elements.length < elementsMax &&
        // Computing another element would delay those before it.
        (elements.length + 1) * Math.max(tookMs, this.#tookMs) < ANSWER_MS
      );
      return { elements, ...saved };
    } catch (error) {
      const failure = this.#iterator.hasReadingFailed ? { hasReadingFailed: true } as const : {};
      return { elements, ...saved, error: withStack(error).toWire(), ...failure };
    }
  }

  /** Saves the state after the end, which only an answer without elements carries. */
  async #lastState(elements: readonly unknown[]): Promise<Snapshot> {
    return elements.length > 0 ? {} : await this.#snapshots.take();
  }

  /** Returns the next result; `undefined` if it is not there yet, unless `waits`. */
  async #next(waits: boolean): Promise<Result | undefined> {
    const next = this.#pending ?? this.#iterator.next();
    this.#pending = undefined;
    if (waits) return await next;
    const first = await Promise.race([next, soon()]);
    if (first !== LATER) return first;
    this.#pending = next;
    next.catch(() => {});
    return undefined;
  }
}

const LATER = Symbol("LATER");

/** Settles after promises that are settled now or within a few microtasks. */
async function soon(): Promise<typeof LATER> {
  for (let i = 0; i < 8; i++) await undefined;
  return LATER;
}

/**
 * Estimates the size of an element in a message, in bytes.
 * @throws {LeatError} if the element cannot be sent. Only this element then fails, not its answer.
 */
function sendableSize(element: unknown): number {
  const size = sizeOf(element, 0);
  if (Number.isNaN(size)) new MessagePlan().envelope(element);
  if (size <= ELEMENT_BYTES_MAX) return size;
  throw new LeatError(
    "resource_exhausted",
    `An element takes ${size} bytes in a message, over the limit of ${ELEMENT_BYTES_MAX}: use smaller batches`,
  );
}

/** Estimates the size of a value, not too low; NaN if a part of it cannot be sent. */
function sizeOf(value: unknown, depth: number): number {
  if (depth > DEPTH_MAX) {
    throw new LeatError("invalid_argument", `An element nests more than ${DEPTH_MAX} deep`);
  }
  switch (typeof value) {
    case "string":
      return sizeOfText(value);
    case "number":
    case "boolean":
      return 9;
    case "bigint":
      return BigInt.asIntN(64, value) === value || BigInt.asUintN(64, value) === value ? 9 : NaN;
    case "object":
      return value === null ? 9 : sizeOfObject(value, depth + 1);
    default:
      return NaN;
  }
}

function sizeOfObject(value: object, depth: number): number {
  if (ArrayBuffer.isView(value)) {
    return dtypeOf(value) === undefined ? NaN : PAYLOAD_BYTES + sizeOfBytes(value);
  }
  if (value instanceof Tensor) return sizeOfTensor(value);
  if (value instanceof RaggedTensor) {
    return sizeOfTensor(value.values) + PAYLOAD_BYTES + sizeOfBytes(value.rowSplits);
  }
  let sum = 9;
  if (Array.isArray(value)) { for (const item of value) sum += sizeOf(item, depth); }
  else if (isPlain(value) && !Object.hasOwn(value, "__proto__")) {
    for (const key in value) {
      sum += sizeOfText(key) + sizeOf((value as Record<string, unknown>)[key], depth);
    }
  } else return NaN;
  return sum;
}

function sizeOfText(text: string): number {
  return text.isWellFormed() ? TEXT_BYTES + utf8Length(text) : NaN;
}

function sizeOfTensor({ dtype, shape, data }: Tensor): number {
  if (shape.length > TENSOR_RANK_MAX || shape.some((length) => length > AXIS_MAX)) return NaN;
  // numpy limits the product of the nonzero axes, even if the array is empty.
  const count = shape.reduce((product, length) => product * Math.max(1, length), 1);
  if (count < ARRAY_ELEMENTS_MAX) return PAYLOAD_BYTES + 4 * shape.length + sizeOfData(dtype, data);
  throw new LeatError(
    "resource_exhausted",
    `An element has a tensor of shape [${shape}], which is too large for a numpy array`,
  );
}

function sizeOfData(dtype: DType, data: Tensor["data"]): number {
  if (!Array.isArray(data)) {
    const bytes = sizeOfBytes(data as TypedArray);
    // A larger one is alone in its answer. The codec looks at its content.
    return dtype === "bool" && bytes < ANSWER_BYTES && !areBools(data as Uint8Array) ? NaN : bytes;
  }
  // A second payload has the offsets, of 4 bytes each.
  let sum = PAYLOAD_BYTES + 4;
  for (const item of data as readonly unknown[]) {
    if (dtype === "string") sum += typeof item === "string" ? sizeOfText(item) : NaN;
    else sum += item instanceof Uint8Array ? 4 + sizeOfBytes(item) : NaN;
  }
  return sum;
}

function sizeOfBytes(array: ArrayBufferView): number {
  return isDetached(array) ? NaN : array.byteLength;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
