/** A segment of a pipeline, on the thread that runs it. */
import { RandomStream } from "../../core/philox.ts";
import { budgetsOf } from "../autotune/options.ts";
import { restoreShared } from "../checkpoint/shared_state.ts";
import { IteratorContext } from "../context.ts";
import { EncodedValue, encodeValue } from "../elements/value_codec.ts";
import type { Host } from "../host.ts";
import { type ElementIterator, END } from "../iterator.ts";
import { ReadingFailure, userErrorOf } from "../iterators/reading_failure.ts";
import type { Consumption } from "../autotune/tuner.ts";
import { PrefetchIterator } from "../operators/prefetch.ts";
import { deserializeGraph } from "../wire.ts";
import type { Segment, SegmentAnswer, SegmentElement, SegmentRequest } from "./function_threads.ts";
import { pack } from "./packing.ts";
import { packError } from "./packed_error.ts";

/** Limit of the elements in one answer. */
const TOGETHER_MAX = 64;
/** An answer with this many bytes of arrays takes no more elements. */
const BYTES_MAX = 2 ** 20;

export class ServedSegment {
  readonly #host: Host;
  readonly #context: IteratorContext;
  readonly #elements: ElementIterator;
  readonly #startedAtMs: number;
  /** How long requests for elements were open, in ms. */
  #askedMs = 0;

  constructor({ graph, shared, randomState, budgets, ...part }: Segment, host: Host) {
    this.#host = host;
    const node = deserializeGraph(graph, { isOwn: true });
    const root = RandomStream.named(randomState.root);
    this.#context = IteratorContext.root(node, host, {
      randomState: { ...randomState, root: () => root },
      deterministic: part.deterministic,
      needsOrder: part.needsOrder,
      isReadOnly: true,
      tuning: { budgets: budgets ?? budgetsOf(undefined), isOff: budgets === undefined },
      rules: new Set(part.rules),
      first: part.first,
    });
    restoreShared(node, new EncodedValue(shared).read({ isOwn: true }), this.#context);
    this.#context.endRestoring(true);
    this.#elements = this.#context.makeIterator();
    this.#startedAtMs = host.nowMs();
  }

  /** Answers a request; adds buffers that should move with the answer to `buffers`. */
  async answer(request: SegmentRequest, buffers: ArrayBuffer[]): Promise<SegmentAnswer> {
    switch (request.kind) {
      case "next":
        return { ...await this.#next(buffers), stats: this.#context.collectStats() };
      case "again": {
        const token = new EncodedValue(request.token).read({ isOwn: true });
        return { answers: [packed(await this.#elements.again(token), buffers)], stats: [] };
      }
      case "save":
        try {
          return { state: encodeValue(await this.#elements.save()), stats: [] };
        } finally {
          this.#context.pause.end();
        }
      case "restore":
        await this.#elements.restore(new EncodedValue(request.state).read({ isOwn: true }));
        return { stats: [] };
    }
  }

  dispose(): void {
    this.#elements.dispose();
    this.#context.close();
  }

  /** The next element, and the following ones that were read ahead already. */
  async #next(buffers: ArrayBuffer[]): Promise<Omit<SegmentAnswer, "stats">> {
    const askedAtMs = this.#host.nowMs();
    const answers: SegmentElement[] = [];
    try {
      do {
        const element = await this.#elements.next();
        if (element === END) return { answers, isEnd: true };
        answers.push(packed(element, buffers));
      } while (this.#isReady && answers.length < TOGETHER_MAX && bytesOf(buffers) < BYTES_MAX);
      return { answers };
    } catch (error) {
      if (error instanceof ReadingFailure) {
        return { answers, failure: packError(userErrorOf(error)) };
      }
      return { answers: [...answers, { error: packError(error) }] };
    } finally {
      this.#askedMs += this.#host.nowMs() - askedAtMs;
      this.#context.tuner.tick(this.#consumption);
    }
  }

  /** Whether the next element is there already. */
  get #isReady(): boolean {
    return this.#elements instanceof PrefetchIterator && this.#elements.isReady;
  }

  readonly #consumption = (): Consumption => {
    const runMs = this.#host.nowMs() - this.#startedAtMs;
    return { waitedMs: this.#askedMs, consumerMs: runMs - this.#askedMs };
  };
}

/** Packs an element. One that cannot be sent becomes an error of that element. */
function packed(element: unknown, buffers: ArrayBuffer[]): SegmentElement {
  const before = buffers.length;
  try {
    return { value: pack(element, buffers) };
  } catch (error) {
    buffers.length = before;
    return { error: packError(error) };
  }
}

function bytesOf(buffers: readonly ArrayBuffer[]): number {
  return buffers.reduce((sum, { byteLength }) => sum + byteLength, 0);
}
