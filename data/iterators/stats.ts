/**
 * What each operator of a running pipeline has done so far.
 */

import { byteSize } from "../../core/tree.ts";

/** One operator's figures since its iterator was opened or restored. Sampled ones are estimates. */
export interface OperatorStats {
  /** The operator as the user wrote it: `"map"`. */
  readonly operator: string;
  /** Its number in the graph, in pre-order from the last operator (0). */
  readonly number: number;
  /** Elements given downstream. */
  readonly elements: number;
  /**
   * Elements that failed here: their function threw, their file is damaged, they do not fit a batch.
   * Of `ignoreErrors`: those that it left out.
   */
  readonly errors: number;
  /**
   * Bytes of the elements that its inputs gave, which is the sum of their `bytesOut`. Of what reads
   * files: bytes read of files, compressed as they are; of `distribute`: bytes that workers sent.
   */
  readonly bytesIn: number;
  /**
   * Bytes of elements given downstream, as `save()` and budgets count them: exact for the first
   * elements and where all are of one size, and otherwise estimated from samples. What is no plain
   * data, such as a dataset, counts for nothing.
   */
  readonly bytesOut: number;
  /**
   * Time on the thread in this operator's user function or in decoding, in milliseconds; sampled
   * when calls are short. What an asynchronous function waits for is not in it: that is in the
   * `waitMs` of the operator that takes its elements.
   */
  readonly selfMs: number;
  /**
   * Time this operator was waiting for its inputs, in milliseconds, or for files and workers. Of
   * operators that read ahead it may be time in which nobody waited for them.
   */
  readonly waitMs: number;
  /** Bytes of elements held now: shuffle buffer, cache, prefetched elements. */
  readonly bufferedBytes: number;
  /**
   * Of `distribute` with `sharing` alone: elements that this trainer has missed, because it was so slow
   * that they had left the window before it asked.
   */
  readonly skipped?: number;
  /** Of `distribute` and `fromId` alone, once they have begun: how it goes with the service. */
  readonly service?: ServiceStats;
}

/**
 * Where the time of a training loop goes that reads a service, and what is on its way. Counts only
 * grow.
 */
export interface ServiceStats {
  /** Elements that the loop has taken, failed ones included, and their encoded size. */
  readonly elements: number;
  readonly bytes: number;
  /** What came from workers, in bytes, compressed as it was. */
  readonly wireBytes: number;
  /** How long the loop has waited for elements. */
  readonly waitingMs: number;
  /** How long decoding took what it was given, and before that unpacking what came compressed. */
  readonly decodingMs: number;
  readonly unpackingMs: number;
  /** How long the loop was busy between having an element and asking for the next. */
  readonly trainingMs: number;
  /** Requests to workers that are open now. */
  readonly inFlight: number;
  /** What has arrived and was not taken yet. */
  readonly bufferedBytes: number;
  /** Each worker's task; those beyond the first few are left out. */
  readonly reads: readonly ServiceRead[];
}

/** How it goes with one worker's task. */
export interface ServiceRead {
  readonly worker: string;
  readonly taskId: number;
  readonly elements: number;
  readonly bytes: number;
  readonly wireBytes: number;
  /** Requests that are open now. */
  readonly outstanding: number;
  /** How long requests were open, summed; and how much of it their elements were not made yet. */
  readonly answerMs: number;
  readonly heldMs: number;
  /** What an empty message takes there and back, where a network lies between. */
  readonly roundTripMs?: number;
}

/** Per operator, in pre-order from the last one. A copy: it does not change any more. */
export type IteratorStats = readonly OperatorStats[];

/** The first elements are measured one by one, then one of so many more as came before, … */
const SAMPLES_PER_DOUBLING = 16;
/** …and at least one of so many. Odd numbers, so that what comes in turn is met in turn. */
const SAMPLE_STEP_MAX = 251;

/** Where the iterators of one operator count what they do. */
export class OperatorMeter {
  readonly operator: string;
  readonly number: number;
  #elements = 0;
  #errors = 0;
  #selfMs = 0;
  #waitMs = 0;
  #bufferedBytes = 0;
  /** Elements that others were given while nobody here asked; `undefined` where that cannot be. */
  #skipped: number | undefined;
  #service: (() => ServiceStats | undefined) | undefined;
  /** Bytes from outside of the pipeline; `undefined` for operators that take elements alone. */
  #received: number | undefined;
  /** The same, of datasets that its functions made. */
  #receivedWithin = 0;
  /** The number of the element that is measured next. */
  #sampleAt = 1;
  /** How many elements the samples stand for, and the bytes of these. */
  #sampled = 0;
  #sampledBytes = 0;
  #lastError: unknown;
  readonly #opener: OperatorMeter | undefined;

  /** `opener`: whose function made the dataset; what is spent and held here is so there, too. */
  constructor(operator: string, number: number, opener?: OperatorMeter) {
    this.operator = operator;
    this.number = number;
    this.#opener = opener;
  }

  /** Counts an element that is given, and answers it. */
  gave<T>(element: T): T {
    if (++this.#elements >= this.#sampleAt) this.#sample(element, this.#elements);
    return element;
  }

  /** Counts the first `count` elements of a block, in order. */
  gaveBlock(block: readonly unknown[], count: number): void {
    const before = this.#elements;
    this.#elements = before + count;
    while (this.#sampleAt <= this.#elements) {
      this.#sample(block[this.#sampleAt - before - 1], this.#sampleAt);
    }
  }

  /** A sample stands for the elements after the one before it: its own size has no say in how many. */
  #sample(element: unknown, number: number): void {
    this.#sampledBytes += sizeOf(element) * (number - this.#sampled);
    this.#sampled = number;
    const step = Math.min(number / SAMPLES_PER_DOUBLING, SAMPLE_STEP_MAX);
    this.#sampleAt = number + (step | 1);
  }

  /** Counts an element that failed here, and answers its error: once, whoever passes it on. */
  failed<E>(error: E): E {
    if (error === this.#lastError) return error;
    this.#lastError = error;
    this.#errors++;
    this.#opener?.failed(error);
    return error;
  }

  /** Counts time on the thread. */
  spent(ms: number): void {
    this.#selfMs += ms;
    this.#opener?.spent(ms);
  }

  /** Counts time of waiting. */
  waited(ms: number): void {
    this.#waitMs += ms;
  }

  /** Counts elements that were there once and are gone. */
  missed(elements: number): void {
    this.#skipped = (this.#skipped ?? 0) + elements;
  }

  /** Asks there how it goes with a service. */
  serves(service: () => ServiceStats | undefined): void {
    this.#service = service;
  }

  /** Counts bytes that came from outside of the pipeline. */
  received(bytes: number): void {
    this.#received = (this.#received ?? 0) + bytes;
    this.#opener?.receivedWithin(bytes);
  }

  /** Counts what a dataset received that this operator opened. */
  receivedWithin(bytes: number): void {
    this.#receivedWithin += bytes;
    this.#opener?.receivedWithin(bytes);
  }

  /** Notes that so many bytes more are held. */
  holds(bytes: number): void {
    this.#bufferedBytes += bytes;
    this.#opener?.holds(bytes);
  }

  /** The figures as they are now. `bytesOfInputs`: what the inputs gave. */
  read(bytesOfInputs: number): OperatorStats {
    const bytesPerElement = this.#sampled === 0 ? 0 : this.#sampledBytes / this.#sampled;
    const service = this.#service?.();
    return {
      operator: this.operator,
      number: this.number,
      elements: this.#elements,
      errors: this.#errors,
      bytesIn: (this.#received ?? bytesOfInputs) + this.#receivedWithin,
      bytesOut: Math.round(bytesPerElement * this.#elements),
      selfMs: this.#selfMs,
      waitMs: this.#waitMs,
      bufferedBytes: this.#bufferedBytes,
      ...(this.#skipped === undefined ? {} : { skipped: this.#skipped }),
      ...(service === undefined ? {} : { service }),
    };
  }
}

/** Estimates what a buffer of elements holds from one in `BUFFER_SAMPLE_EVERY` of them. */
export class BufferMeter {
  readonly #meter: OperatorMeter;
  #seen = 0;
  #sampled = 0;
  #sampledBytes = 0;
  #bytes = 0;

  constructor(meter: OperatorMeter) {
    this.#meter = meter;
  }

  /** The estimate for a buffer of the size last noted. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts an element that enters the buffer. */
  enters(element: unknown): void {
    if (this.#seen++ % BUFFER_SAMPLE_EVERY !== 0 && this.#sampled >= BUFFER_SAMPLES_FIRST) return;
    this.#sampled++;
    this.#sampledBytes += sizeOf(element);
  }

  /** Notes how many elements the buffer holds now. */
  holds(count: number): void {
    const bytes = this.#sampled === 0 ? 0 : Math.round(this.#sampledBytes / this.#sampled * count);
    if (bytes === this.#bytes) return;
    this.#meter.holds(bytes - this.#bytes);
    this.#bytes = bytes;
  }
}

const BUFFER_SAMPLES_FIRST = 4;
const BUFFER_SAMPLE_EVERY = 64;

/** `byteSize`; elements may be anything until they are batched, and what has no size counts as none. */
function sizeOf(element: unknown): number {
  if (typeof element === "number") return 8;
  try {
    return byteSize(element);
  } catch {
    return 0;
  }
}
