/** The fetcher of parallel `interleave`: opens datasets, and reads ahead in several of them. */
import type { Setting } from "../../autotune/model.ts";
import { Call, type NodeFunction } from "../../udf/call.ts";
import type { IteratorContext } from "../../context.ts";
import {
  argumentOf,
  type HeldElements,
  heldFrom,
  restoreHeld,
  saveHeld,
} from "../../elements/held.ts";
import { type ElementIterator, END } from "../../iterator.ts";
import { BufferMeter } from "../../iterators/stats.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { Opened } from "./opened.ts";
import { ReadAhead, type ReadAheadState } from "./read_ahead.ts";
import { wholeState } from "../../checkpoint/whole_state.ts";

export interface FetchLimits {
  /** How many datasets are in slots. Up to `inFlightMax` more are opened in advance. */
  readonly cycleLength: number;
  /** Limit of the answers fetched ahead of each dataset. */
  readonly answersMax: number;
  /** Limit of the fetches and calls in flight. */
  readonly inFlightMax: Setting;
}

export interface FetcherState {
  readonly upcoming: ReadAheadState[];
  /** An element of the input to which the function was not applied yet. */
  readonly outer: unknown;
  readonly inputEnded: boolean;
  readonly calls: number;
}

/** Reads ahead in the datasets in slots and in upcoming ones. What is given first is fetched first. */
export class DatasetFetcher {
  readonly #context: IteratorContext;
  readonly #input: ElementIterator;
  readonly #call: Call;
  readonly #limits: FetchLimits;
  /** The datasets in slots. */
  readonly #places: readonly (ReadAhead | undefined)[];
  /** The slot that gives the next element. */
  readonly #turn: () => number;
  readonly #upcoming: ReadAhead[] = [];
  readonly #meter: BufferMeter;
  #answers = 0;
  #outer: HeldElements | undefined;
  #pulling = false;
  #inputEnded = false;
  #inFlight = 0;
  /** Whether the consumer has made its first request. Nothing begins before that. */
  #begun = false;
  /** Nothing begins while the state is saved. */
  #paused = false;
  /** Nothing begins while the event loop runs other work. */
  #yielding = false;
  #stopped = false;
  #disposed = false;
  #waiting: PromiseWithResolvers<typeof AGAIN> | undefined;

  constructor(
    context: IteratorContext,
    input: ElementIterator,
    fn: NodeFunction,
    limits: FetchLimits,
    places: readonly (ReadAhead | undefined)[],
    turn: () => number,
  ) {
    this.#context = context;
    this.#input = input;
    this.#call = new Call(fn, context, { overlapping: true });
    this.#limits = limits;
    this.#places = places;
    this.#turn = turn;
    this.#meter = new BufferMeter(context.stats);
  }

  /** Whether there will be no more datasets. */
  get isExhausted(): boolean {
    return this.#inputEnded && this.#outer === undefined && this.#upcoming.length === 0;
  }

  /** Datasets that are read or made ahead, for the slots that become empty next. */
  get upcoming(): readonly ReadAhead[] {
    return this.#upcoming;
  }

  /** Whether a fetch, or a call that makes a dataset, is in flight. */
  get isBusy(): boolean {
    return this.#inFlight > 0;
  }

  /** Removes and returns the next dataset for a slot, if there is one. */
  takeNext(): ReadAhead | undefined {
    return this.#upcoming.shift();
  }

  taken(): void {
    this.#meter.holds(--this.#answers);
  }

  /** Resolves once anything has arrived. */
  progress(): Promise<typeof AGAIN> {
    this.#waiting ??= Promise.withResolvers();
    return this.#waiting.promise;
  }

  /** Begins nothing more. Requests in flight still arrive. */
  stop(): void {
    this.#stopped = true;
  }

  /** Begins everything that the limits allow. */
  fetchAhead(): void {
    this.#begun = true;
    this.#beginAll();
  }

  #beginAll(): void {
    const { pacer } = this.#context;
    while (this.#mayBegin) {
      if (!this.#beginOne()) return;
      if (pacer.due()) this.#yield();
    }
  }

  get #mayBegin(): boolean {
    return this.#begun && !this.#paused && !this.#yielding && !this.#stopped && !this.#disposed;
  }

  async #yield(): Promise<void> {
    this.#yielding = true;
    await this.#context.pacer.yield();
    this.#yielding = false;
    this.#changed();
  }

  /** Continues after something has arrived. */
  #changed(): void {
    this.#beginAll();
    this.#waiting?.resolve(AGAIN);
    this.#waiting = undefined;
  }

  #beginOne(): boolean {
    if (this.#inFlight >= this.#limits.inFlightMax.value) return this.#pull();
    const ahead = this.#nextToFetch();
    if (ahead !== undefined) this.#fetch(ahead);
    else if (this.#outer !== undefined) this.#make(this.#outer);
    else return this.#pull();
    return true;
  }

  #nextToFetch(): ReadAhead | undefined {
    const { answersMax } = this.#limits;
    const { length } = this.#places;
    const turn = this.#turn();
    for (let i = 0; i < length; i++) {
      const ahead = this.#places[(turn + i) % length];
      if (ahead?.canFetch(answersMax)) return ahead;
    }
    return this.#upcoming.find((next) => next.canFetch(answersMax));
  }

  #fetch(ahead: ReadAhead): void {
    try {
      const element = ahead.opened!.iterator.next();
      if (element instanceof Promise) {
        this.#during(ahead, async () => this.#arrive(ahead, await element));
      } else this.#arrive(ahead, element);
    } catch (error) {
      this.#fail(ahead, error);
    }
  }

  #arrive(ahead: ReadAhead, element: unknown): void {
    if (this.#disposed) return;
    ahead.arrive(element);
    if (element !== END) this.#count(element);
  }

  #fail(ahead: ReadAhead, error: unknown): void {
    if (this.#disposed) return;
    ahead.fail(error);
    this.#count(error);
  }

  #count(value: unknown): void {
    this.#meter.enters(value);
    this.#meter.holds(++this.#answers);
  }

  /** Tracks a request in flight for one dataset; the returned promise never rejects. */
  async #during(ahead: ReadAhead, wait: () => Promise<void>): Promise<void> {
    ahead.isBusy = true;
    this.#inFlight++;
    const { host, stats } = this.#context;
    const startedAtMs = host.nowMs();
    try {
      await wait();
    } catch (error) {
      this.#fail(ahead, error);
    }
    stats.called(host.nowMs() - startedAtMs);
    this.#inFlight--;
    ahead.isBusy = false;
    this.#changed();
  }

  /** Requests the input's next element, unless a request is open or too many datasets are. */
  #pull(): boolean {
    if (this.#pulling || this.#inputEnded || this.#outer !== undefined) return false;
    const placed = this.#places.filter((ahead) => ahead?.isOver === false).length;
    const { cycleLength, inFlightMax } = this.#limits;
    if (placed + this.#upcoming.length >= cycleLength + inFlightMax.value) return false;
    try {
      const outer = this.#input.next();
      if (outer instanceof Promise) this.#pullLater(outer);
      else this.#accept(outer);
    } catch (error) {
      this.#refuse(error);
    }
    return true;
  }

  async #pullLater(pending: Promise<unknown>): Promise<void> {
    this.#pulling = true;
    try {
      this.#accept(await pending);
    } catch (error) {
      this.#refuse(error);
    }
    this.#pulling = false;
    this.#changed();
  }

  #accept(outer: unknown): void {
    if (outer === END || this.#disposed) this.#inputEnded = true;
    else this.#outer = heldFrom(this.#input, outer);
  }

  /** An element of the input failed: its error is given where its dataset's elements would be. */
  #refuse(error: unknown): void {
    const failed = new ReadAhead();
    this.#upcoming.push(failed);
    this.#fail(failed, error);
  }

  /** Calls the function to make the next dataset. */
  #make(outer: HeldElements): void {
    this.#outer = undefined;
    const ahead = new ReadAhead();
    this.#upcoming.push(ahead);
    const { index } = this.#call;
    const open = (made: unknown) => {
      if (this.#disposed) return;
      ahead.opened = new Opened(this.#call, index, outer, made, this.#context);
    };
    try {
      const made = this.#call.one(argumentOf(outer));
      if (made instanceof Promise) this.#during(ahead, async () => open(await made));
      else open(made);
    } catch (error) {
      this.#fail(ahead, error);
    }
  }

  /** Waits for requests in flight; nothing begins until the iteration is saved. */
  async rest(): Promise<void> {
    this.#paused = true;
    this.#context.pause.whenOver(() => {
      this.#paused = false;
      this.#beginAll();
    });
    while ((this.#inFlight > 0 || this.#pulling) && !this.#disposed) await this.progress();
  }

  async save(): Promise<FetcherState> {
    const upcoming: ReadAheadState[] = [];
    for (const next of this.#upcoming) if (!next.isUnread) upcoming.push(await next.save());
    return {
      upcoming,
      outer: this.#outer === undefined ? undefined : saveHeld(this.#outer),
      inputEnded: this.#inputEnded,
      calls: this.#call.index,
    };
  }

  /** Resumes from `state`. The input must have been restored. */
  async restore(state: FetcherState): Promise<void> {
    const { upcoming, outer, inputEnded, calls } = wholeState(state);
    this.#call.resume(calls);
    for (const next of upcoming) this.#upcoming.push(await this.restoreOne(next));
    if (outer !== undefined) this.#outer = await restoreHeld(outer, this.#input);
    this.#inputEnded = inputEnded;
  }

  async restoreOne(state: ReadAheadState): Promise<ReadAhead> {
    const ahead = await ReadAhead.restore(
      state,
      (opened) => Opened.restore(opened, this.#call, this.#input, this.#context),
    );
    for (const { value } of ahead.answers) this.#count(value);
    return ahead;
  }

  dispose(): void {
    this.#disposed = this.#inputEnded = true;
    for (const next of this.#upcoming.splice(0)) next.dispose();
    this.#outer = undefined;
    this.#meter.holds(0);
    this.#changed();
  }
}
