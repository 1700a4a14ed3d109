/** The iterator of a `prefetch` whose pipeline runs on another thread. */
import { type Outcome, saveOutcome } from "../elements/answer.ts";
import { EncodedValue, encodeValue } from "../elements/value_codec.ts";
import { saveShared } from "../checkpoint/shared_state.ts";
import type { IteratorContext } from "../context.ts";
import { ElementIterator, END, type Pulled, type Token } from "../iterator.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import { addStats, type IteratorStats } from "../iterators/stats.ts";
import type { DatasetNode } from "../node.ts";
import { type PrefetchState, requireMovable } from "../operators/prefetch.ts";
import { serializeGraph } from "../wire.ts";
import type { OpenSegment, Segment, SegmentAnswer, SegmentElement } from "./function_threads.ts";
import { unpack } from "./packing.ts";
import { unpackError } from "./packed_error.ts";

/**
 * Starts the operator of this context, and all below it, on a thread.
 *
 * @throws {LeatError} with the reason why it cannot run there.
 */
export async function openSegment(
  node: DatasetNode,
  context: IteratorContext,
): Promise<ElementIterator> {
  const segment = segmentOf(node, context);
  return new SegmentIterator(context, await context.cores.own!.openSegment(segment));
}

function segmentOf(node: DatasetNode, context: IteratorContext): Segment {
  requireMovable(node);
  const { deterministic, options: { tuning, rules = [] }, instance } = context.delegation;
  const { root, ...randomState } = context.randomState;
  return {
    graph: serializeGraph(node),
    shared: encodeValue(saveShared(node, context)),
    randomState: { ...randomState, root: root().name },
    deterministic,
    needsOrder: instance.keepsOrder,
    budgets: tuning === undefined || tuning.isOff ? undefined : tuning.budgets,
    rules: [...rules],
    first: { number: instance.stats.number, randomStateNumber: instance.randomStateNumber },
  };
}

/** Requests elements in blocks, the next one while the last one is being given. */
class SegmentIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #segment: OpenSegment;
  /** The figures of earlier repetitions. */
  readonly #earlier: IteratorStats | undefined;
  /** Answers that arrived and were not given yet. */
  #ahead: Outcome[] = [];
  /** The length of `#ahead` when the last block arrived. */
  #aheadAtArrival = 0;
  /** The request in flight; never rejects. */
  #asking: Promise<void> | undefined;
  #ended = false;
  #failure: ReadingFailure | undefined;
  /** The input on this thread, once the segment is closed. */
  #inputHere: ElementIterator | undefined;
  /** Nothing is requested while the iteration is saved. */
  #paused = false;

  constructor(context: IteratorContext, segment: OpenSegment) {
    super();
    this.#context = context;
    this.#segment = segment;
    this.#earlier = context.delegation.instance.remoteStats;
    context.cores.segments++;
  }

  override next(): Pulled<unknown> {
    if (this.disposed) return END;
    if (this.#ahead.length > 0) return this.#give();
    if (this.#ended) return END;
    if (this.#failure !== undefined) throw this.#failure;
    return this.#later();
  }

  /** It gives no tokens, but states saved without threads have some, and random access makes them. */
  override async again(token: Token): Promise<unknown> {
    if (this.disposed) return await this.#madeHere(token);
    const { answers } = await this.#segment.ask({ kind: "again", token: encodeValue(token) });
    const { failed, value } = outcomeOf(answers![0]!);
    if (failed) throw value;
    return value;
  }

  /** Makes an element again on this thread, because the other one may run another segment by now. */
  #madeHere(token: Token): unknown {
    if (this.#inputHere === undefined) {
      this.#inputHere = this.#context.makeInput();
      this.#inputHere.dispose(); // it recomputes elements all the same
    }
    return this.#inputHere.again(token);
  }

  protected override async saveState(): Promise<PrefetchState> {
    this.#paused = true;
    this.#context.pause.whenOver(() => this.#paused = false);
    await this.#asking;
    const { state } = await this.#segment.ask({ kind: "save" });
    const { buffer, input } = new EncodedValue(state!).read({ isOwn: true }) as PrefetchState;
    const ahead = this.#ahead.map((answer) => saveOutcome(answer));
    return { buffer: [...ahead, ...buffer], input };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    await this.#segment.ask({ kind: "restore", state: encodeValue(state) });
  }

  protected override release(): void {
    this.#context.cores.segments--;
    this.#segment.close();
    this.#ahead = [];
  }

  async #later(): Promise<unknown> {
    await this.#context.waitFor(this.#ask());
    return this.next();
  }

  #give(): unknown {
    const { failed, value } = this.#ahead.shift()!;
    if (2 * this.#ahead.length <= this.#aheadAtArrival) this.#ask(); // half of them are given
    const { stats } = this.#context;
    if (failed) throw stats.failed(value);
    return stats.gave(value);
  }

  #ask(): Promise<void> {
    if (this.#ended || this.#paused || this.#failure !== undefined) return Promise.resolve();
    return this.#asking ??= this.#request().finally(() => this.#asking = undefined);
  }

  async #request(): Promise<void> {
    let answer: SegmentAnswer;
    try {
      answer = await this.#segment.ask({ kind: "next" });
    } catch (error) {
      this.#failure = ReadingFailure.of(error);
      return;
    }
    if (this.disposed) return;
    const { answers = [], isEnd = false, failure, stats } = answer;
    this.#context.delegation.instance.remoteStats = this.#earlier === undefined
      ? stats
      : addStats(this.#earlier, stats);
    this.#ahead.push(...answers.map(outcomeOf));
    this.#aheadAtArrival = this.#ahead.length;
    this.#ended = isEnd;
    if (failure !== undefined) this.#failure = ReadingFailure.of(unpackError(failure));
  }
}

function outcomeOf(answer: SegmentElement): Outcome {
  return "value" in answer
    ? { failed: false, value: unpack(answer.value) }
    : { failed: true, value: unpackError(answer.error) };
}
