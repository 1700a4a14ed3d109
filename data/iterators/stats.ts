/** Figures of each operator of a running pipeline. */
import type { RamBudget } from "../autotune/tuner.ts";
import { byteSize } from "../../core/tree.ts";

/** One operator's figures since its iterator was opened or restored. Sampled ones are estimates. */
export interface OperatorStats {
  /** The operator's name in user code: `"map"`. */
  readonly operator: string;
  /** Its number in the graph, in pre-order from the last operator (0). */
  readonly number: number;
  /** Elements given downstream. */
  readonly elements: number;
  /**
   * Elements that failed here: their function threw, their file is damaged, they do not fit a
   * batch. For `ignoreErrors`: the elements that it left out.
   */
  readonly errors: number;
  /**
   * Bytes of the elements that its inputs gave: the sum of their `bytesOut`. For operators that
   * read files: bytes read, before decompression; for `distribute`: bytes that workers sent.
   */
  readonly bytesIn: number;
  /**
   * Bytes of elements given downstream, as `save()` and budgets count them: exact for the first
   * elements and where all have one size, otherwise estimated from samples. Values that are no
   * plain data, such as datasets, do not count.
   */
  readonly bytesOut: number;
  /**
   * Time on the thread in this operator's user function or in decoding, in milliseconds; sampled
   * when calls are short. An asynchronous function's waiting is not included: it counts as `waitMs`
   * of the operator that takes its elements.
   */
  readonly selfMs: number;
  /**
   * Time that this operator waited for inputs, files or workers, in milliseconds. For operators
   * that read ahead it may include time in which no other operator waited for them.
   */
  readonly waitMs: number;
  /** Bytes of elements held now: shuffle buffer, cache, prefetched elements. */
  readonly bufferedBytes: number;
  /** Only for operators with `numParallelCalls`: calls on other threads, or why there are none. */
  readonly threads?: ThreadStats;
  /** Only for operators with `AUTOTUNE`: what it has chosen, and why. */
  readonly tuning?: TuningStats;
  /**
   * Only for `distribute` with `sharing`: elements that this trainer missed, because they had left
   * the window before it asked.
   */
  readonly skipped?: number;
  /** Only for `distribute` and `fromId`, once they have begun: figures of the service. */
  readonly service?: ServiceStats;
}

/** Whether nothing was counted: the operator has not run, or not here. */
export function isIdle(stats: OperatorStats): boolean {
  const { elements, errors, selfMs, waitMs, bufferedBytes } = stats;
  return elements + errors + selfMs + waitMs + bufferedBytes === 0;
}

/** What other threads did for one operator. */
export interface ThreadStats {
  /** How many calls of its function they made. */
  readonly calls: number;
  /** How long they took, added up, in ms. `selfMs` has the time of the calls made here. */
  readonly workMs: number;
  /** Why calls are made on the thread of the pipeline. */
  readonly obstacle?: string;
}

/** The value that `AUTOTUNE` chose for one operator, and what the model expected of it. */
export interface TuningStats {
  /** The argument that was tuned. */
  readonly parameter: "numParallelCalls" | "bufferSize";
  /** Its value now. */
  readonly value: number;
  /** With this value, how long the model expects the operator to take for an element, in ms. */
  readonly expectedMs?: number;
  /** Mean time for which its consumer waited for an element before the change, in ms. */
  readonly measuredMs?: number;
}

/** Totals of one operator, from which the tuner makes its model. */
export interface OperatorFigures {
  readonly number: number;
  readonly elements: number;
  readonly selfMs: number;
  readonly waitMs: number;
  /** Durations of asynchronous calls, overlapping ones added. */
  readonly callMs: number;
  readonly bytesOut: number;
}

/**
 * How a training loop that reads from a service spends its time, and what is in transit. Counts
 * never decrease.
 */
export interface ServiceStats {
  /** Elements that the loop has taken, failed ones included. */
  readonly elements: number;
  /** Their encoded size, in bytes. */
  readonly bytes: number;
  /** Bytes received from workers, before decompression. */
  readonly wireBytes: number;
  /** How long the loop has waited for elements, in ms. */
  readonly waitingMs: number;
  /** How long decoding took, without decompression, in ms. It is part of neither waiting nor training. */
  readonly decodingMs: number;
  /** How long decompressing elements on arrival took, in ms. It overlaps waiting and training. */
  readonly unpackingMs: number;
  /** How long the loop was busy between getting an element and asking for the next, in ms. */
  readonly trainingMs: number;
  /** Requests to workers that are open now. */
  readonly inFlight: number;
  /** Bytes that have arrived and were not taken yet. */
  readonly bufferedBytes: number;
  /** Each worker's task; those beyond the first few are left out. */
  readonly reads: readonly ServiceRead[];
}

/** The figures of one worker's task. */
export interface ServiceRead {
  /** The name of the worker. */
  readonly worker: string;
  /** The number of its task. */
  readonly taskId: number;
  /** Elements received. */
  readonly elements: number;
  /** Their encoded size, in bytes. */
  readonly bytes: number;
  /** Bytes received, before decompression. */
  readonly wireBytes: number;
  /** Requests that are open now. */
  readonly outstanding: number;
  /** How long requests were open, in total, in ms. */
  readonly answerMs: number;
  /** How much of it they waited at the worker for their elements, in ms. */
  readonly heldMs: number;
  /** The round trip of an empty message, if the task is reached over a network, in ms. */
  readonly roundTripMs?: number;
  /** The part of `wireBytes` that came through a file shared with a worker of this host. */
  readonly slotBytes?: number;
}

/** Per operator, in pre-order from the last one. A copy: it does not change any more. */
export type IteratorStats = readonly OperatorStats[];

/** The figures of two runs of the same operators: totals are added, the rest is of the later run. */
export function addStats(earlier: IteratorStats, later: IteratorStats): IteratorStats {
  return later.map((stats, at) => sumOf(earlier[at]!, stats));
}

/** The same for one operator. */
export function sumOf(before: OperatorStats, stats: OperatorStats): OperatorStats {
  return {
    ...stats,
    elements: before.elements + stats.elements,
    errors: before.errors + stats.errors,
    bytesIn: before.bytesIn + stats.bytesIn,
    bytesOut: before.bytesOut + stats.bytesOut,
    selfMs: before.selfMs + stats.selfMs,
    waitMs: before.waitMs + stats.waitMs,
  };
}

/** The first elements are all measured. Then this many while the number of elements doubles. */
const SAMPLES_PER_DOUBLING = 16;
/** At least one element in this many is measured. Odd: if two kinds alternate, both are measured. */
const SAMPLE_STEP_MAX = 251;

/** Counts what the iterators of one operator do. */
export class OperatorMeter {
  readonly operator: string;
  readonly number: number;
  #elements = 0;
  #errors = 0;
  #selfMs = 0;
  #waitMs = 0;
  #awaitedMs = 0;
  #callMs = 0;
  #bufferedBytes = 0;
  /** Elements missed in a shared window; `undefined` if it reads no window. */
  #skipped: number | undefined;
  #service: (() => ServiceStats | undefined) | undefined;
  /**
   * Bytes that came from outside the pipeline; `undefined` for operators that only take elements.
   */
  #received: number | undefined;
  /** Bytes that came from outside to datasets that its functions made. */
  #receivedWithin = 0;
  /** The number, from 1, of the element that is measured next. */
  #sampleAt = 1;
  /** How many elements the samples stand for, and their bytes. */
  #sampled = 0;
  #sampledBytes = 0;
  #threadCalls = 0;
  #threadMs = 0;
  /** Why other threads cannot call its function. */
  #obstacle: string | undefined;
  #lastError: unknown;
  readonly #opener: OperatorMeter | undefined;
  /** Whether a function of another operator made the dataset. */
  readonly isNested: boolean;

  /**
   * @param opener The operator that opened the dataset. Errors, time and bytes count there too.
   * @param isNested Default: whether there is an opener.
   */
  constructor(
    operator: string,
    number: number,
    opener?: OperatorMeter,
    isNested = opener !== undefined,
  ) {
    this.operator = operator;
    this.number = number;
    this.#opener = opener;
    this.isNested = isNested;
  }

  /** Counts an element that is given, and returns it. */
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

  /** Counts the rows of a batch that are given as elements. */
  gaveRows(batch: unknown, count: number): void {
    this.#elements += count;
    this.#sampledBytes += sizeOf(batch) / count * (this.#elements - this.#sampled);
    this.#sampled = this.#elements;
    this.#sampleAt = this.#elements + 1;
  }

  /** The size of a sample counts for all elements since the previous sample. */
  #sample(element: unknown, number: number): void {
    this.#sampledBytes += sizeOf(element) * (number - this.#sampled);
    this.#sampled = number;
    const step = Math.min(number / SAMPLES_PER_DOUBLING, SAMPLE_STEP_MAX);
    this.#sampleAt = number + (step | 1);
  }

  /** Counts an element that failed here, and returns its error. The same error in a row counts once. */
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

  waited(ms: number): void {
    this.#waitMs += ms;
  }

  /** Counts time for which an operator with several inputs, or datasets of its own, waited for this one. */
  awaited(ms: number): void {
    this.#awaitedMs += ms;
  }

  get awaitedMs(): number {
    return this.#awaitedMs;
  }

  /** Counts the time of an asynchronous call, which may overlap others. */
  called(ms: number): void {
    this.#callMs += ms;
  }

  /** Counts calls that another thread has made, and how long it took. */
  calledOnThread(calls: number, ms: number): void {
    this.#threadCalls += calls;
    this.#threadMs += ms;
    this.#callMs += ms;
    this.#opener?.calledOnThread(calls, ms);
  }

  /** Notes why another thread cannot call the function. */
  noteObstacle(reason: string): void {
    this.#obstacle = reason;
    this.#opener?.noteObstacle(reason);
  }

  /** The bytes given downstream, as estimated from samples. */
  get #bytesOut(): number {
    return this.#sampled === 0 ? 0 : this.#sampledBytes / this.#sampled * this.#elements;
  }

  /** Totals for the tuner's model. */
  get figures(): OperatorFigures {
    return {
      number: this.number,
      elements: this.#elements,
      selfMs: this.#selfMs,
      waitMs: this.#waitMs,
      callMs: this.#callMs,
      bytesOut: this.#bytesOut,
    };
  }

  /** Counts elements that have left the window unread. */
  missed(elements: number): void {
    this.#skipped = (this.#skipped ?? 0) + elements;
  }

  /** Sets the function that returns the service's figures. */
  serves(service: () => ServiceStats | undefined): void {
    this.#service = service;
  }

  /** Like `serves()`, for the operator that opened the dataset. */
  openerServes(service: () => ServiceStats | undefined): void {
    this.#opener?.serves(service);
  }

  /** Counts bytes from outside the pipeline. */
  received(bytes: number): void {
    this.#received = (this.#received ?? 0) + bytes;
    this.#opener?.receivedWithin(bytes);
  }

  /** Counts bytes received by a dataset that this operator opened. */
  receivedWithin(bytes: number): void {
    this.#receivedWithin += bytes;
    this.#opener?.receivedWithin(bytes);
  }

  /** Notes that this many more bytes are held. */
  holds(bytes: number): void {
    this.#bufferedBytes += bytes;
    this.#opener?.holds(bytes);
  }

  /** Notes that these elements are held, and nothing else. */
  holdsOnly(elements: readonly unknown[]): void {
    this.holds(estimateSize(elements) - this.#bufferedBytes);
  }

  get #threads(): ThreadStats {
    const figures = { calls: this.#threadCalls, workMs: this.#threadMs };
    return this.#obstacle === undefined ? figures : { ...figures, obstacle: this.#obstacle };
  }

  /** The current figures. `bytesOfInputs`: bytes that the inputs gave. */
  read(bytesOfInputs: number): OperatorStats {
    const service = this.#service?.();
    return {
      operator: this.operator,
      number: this.number,
      elements: this.#elements,
      errors: this.#errors,
      bytesIn: (this.#received ?? bytesOfInputs) + this.#receivedWithin,
      bytesOut: Math.round(this.#bytesOut),
      selfMs: this.#selfMs,
      waitMs: this.#waitMs,
      bufferedBytes: this.#bufferedBytes,
      ...(this.#threadCalls === 0 && this.#obstacle === undefined
        ? {}
        : { threads: this.#threads }),
      ...(this.#skipped === undefined ? {} : { skipped: this.#skipped }),
      ...(service === undefined ? {} : { service }),
    };
  }
}

/**
 * Estimates the bytes in a buffer of elements. Without a budget it measures one element in
 * `BUFFER_SAMPLE_EVERY`. With a budget it measures all, and the estimate follows the largest recent one.
 */
export class BufferMeter {
  readonly #meter: OperatorMeter;
  readonly #ram: RamBudget | undefined;
  #seen = 0;
  #sampled = 0;
  #sampledBytes = 0;
  #bytes = 0;
  #largestBytes = 0;

  /** `ram`: the budget that the buffer counts against. */
  constructor(meter: OperatorMeter, ram?: RamBudget) {
    this.#meter = meter;
    this.#ram = ram;
  }

  /** Whether the budget has room for one more element. */
  get fitsOneMore(): boolean {
    return this.#ram === undefined || this.#ram.fits(this.#elementBytes);
  }

  /** With a budget the largest of the last elements, otherwise the mean of the samples. */
  get #elementBytes(): number {
    if (this.#ram !== undefined) return this.#largestBytes;
    return this.#sampled === 0 ? 0 : this.#sampledBytes / this.#sampled;
  }

  enters(element: unknown): void {
    if (this.#ram !== undefined) {
      this.#largestBytes = Math.max(sizeOf(element), this.#largestBytes * LARGEST_KEPT);
      return;
    }
    if (this.#seen++ % BUFFER_SAMPLE_EVERY !== 0 && this.#sampled >= BUFFER_SAMPLES_FIRST) return;
    this.#sampled++;
    this.#sampledBytes += sizeOf(element);
  }

  /** Notes how many elements the buffer holds now. */
  holds(count: number): void {
    const bytes = Math.round(this.#elementBytes * count);
    if (bytes === this.#bytes) return;
    this.#ram?.holds(bytes - this.#bytes);
    this.#meter.holds(bytes - this.#bytes);
    this.#bytes = bytes;
  }
}

/** Factor by which the largest size decays with each smaller element: to 38 % after 64 of them. */
const LARGEST_KEPT = 0.985;
const BUFFER_SAMPLES_FIRST = 4;
const BUFFER_SAMPLE_EVERY = 64;

const SIZE_SAMPLES = 64;

/** Estimates the bytes of many elements from some of them. */
function estimateSize(elements: readonly unknown[]): number {
  const step = Math.ceil(elements.length / SIZE_SAMPLES);
  let sampled = 0;
  let bytes = 0;
  for (let i = 0; i < elements.length; i += step) {
    sampled++;
    bytes += sizeOf(elements[i]);
  }
  return sampled === 0 ? 0 : Math.round(bytes / sampled * elements.length);
}

/** `byteSize()` of an element; 0 for values that have no size, such as datasets. */
export function sizeOf(element: unknown): number {
  if (typeof element === "number") return 8;
  try {
    return byteSize(element);
  } catch {
    return 0;
  }
}
