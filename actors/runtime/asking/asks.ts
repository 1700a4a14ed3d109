/** The open asks of a node: each is settled once, by answer, deadline, loss or the asker's end. */
import { LeatError, type LeatErrorCode, type WireError } from "../../../core/error.ts";
import type { AskOptions } from "../actor.ts";
import type { Cell } from "../cell.ts";
import { copyBody } from "../body.ts";
import { type AskEnvelope, OPEN_MAX } from "../envelope.ts";
import { Groups, type Hold, Holdings, type Member } from "./groups.ts";
import { formatRef, keyOf, type Ref } from "../ref.ts";
import type { Random, Timer, World } from "../world.ts";

/** Delay before an ask is repeated to an unavailable receiver; doubles up to the maximum. */
const RETRY_MIN_MS = 20;
const RETRY_MAX_MS = 2_000;
/** An actor keeps empty lists for this many targets: most actors ask the same few. */
const TARGETS_KEPT = 16;

/** The `details.reason` of the refusal of an ask that was handled, and whose answer is gone. */
export const ANSWER_NOT_KEPT = "answer_not_kept";

/** Why an ask was refused. An error takes as long as several messages, so it is made on demand. */
export interface Refusal {
  readonly code: LeatErrorCode;
  readonly details?: WireError["details"] | undefined;
  readonly error: () => LeatError;
}

export interface OpenAsk {
  readonly id: number;
  readonly asker: Cell;
  readonly target: Ref;
  /** See {@linkcode keyOf}. */
  readonly targetKey: string;
  readonly method: string;
  readonly body: unknown;
  readonly deadlineMs: number;
  readonly attemptMs: number | undefined;
  /** See {@linkcode AskOptions.unavailableMax}. */
  readonly unavailableMax: number;
  /** See {@linkcode AskOptions.isIdempotent}. */
  readonly isIdempotent: boolean;
  readonly resolve: (body: unknown) => void;
  readonly reject: (error: LeatError) => void;
  refusals: number;
  /** How many of the refusals said that the receiver is unavailable. */
  unavailable: number;
  lastRefusal: Refusal | undefined;
  hold: Hold<OpenAsk> | undefined;
  deadline: Deadline<OpenAsk> | undefined;
  nextAttempt: Deadline<OpenAsk> | undefined;
}

/** See {@linkcode AskEnvelope}. */
interface SettledMarks {
  readonly settledBelow: number;
  readonly open: AskEnvelope["open"] | undefined;
}

/** Keeps the open asks of one node. */
export class Asks {
  readonly #world: World;
  readonly #random: Random;
  readonly #send: (ask: OpenAsk) => void;
  readonly #open = new Map<number, OpenAsk>();
  readonly #held = new Holdings<OpenAsk>();
  readonly #deadlines: Deadlines<OpenAsk>;
  readonly #attempts: Deadlines<OpenAsk>;
  #lastId = 0;

  constructor(world: World, random: Random, send: (ask: OpenAsk) => void) {
    this.#world = world;
    this.#random = random;
    this.#send = send;
    this.#deadlines = new Deadlines(world, (ask) => this.#expired(ask));
    this.#attempts = new Deadlines(world, (ask) => this.#again(ask));
  }

  get size(): number {
    return this.#open.size;
  }

  begin(
    asker: Cell,
    target: Ref,
    method: string,
    body: unknown,
    options: AskOptions,
  ): Promise<unknown> {
    if (!(options.timeoutMs >= 0)) {
      const error = `ask "${method}" needs a timeoutMs of at least 0, got ${options.timeoutMs}`;
      return Promise.reject(new LeatError("invalid_argument", error));
    }
    return new Promise((resolve, reject) => {
      const ask: OpenAsk = {
        id: ++this.#lastId,
        asker,
        target,
        targetKey: keyOf(target),
        method,
        // A repeated ask has the same body, even if the sender has changed its object since.
        body: options.attemptMs === undefined ? body : copyBody(body),
        deadlineMs: this.#world.nowMs() + options.timeoutMs,
        attemptMs: options.attemptMs,
        unavailableMax: options.unavailableMax ?? Infinity,
        isIdempotent: options.isIdempotent === true,
        resolve,
        reject,
        refusals: 0,
        unavailable: 0,
        lastRefusal: undefined,
        hold: undefined,
        deadline: undefined,
        nextAttempt: undefined,
      };
      this.#add(ask);
      this.#attempt(ask);
    });
  }

  #add(ask: OpenAsk): void {
    this.#open.set(ask.id, ask);
    ask.hold = this.#held.add(ask.target.node, ask.asker, ask);
    ask.deadline = this.#deadlines.add(ask.deadlineMs, ask);
    if (ask.attemptMs !== undefined) this.#markOpen(ask);
  }

  /** Whether the ask with that id was sent to that node; also true if there is no such ask. */
  isAskedOf(id: number, node: string): boolean {
    const ask = this.#open.get(id);
    return ask === undefined || ask.target.node === node;
  }

  /** Settles the ask with that id, if it is open and was made by that incarnation. */
  answered(id: number, incarnation: string | undefined, body: unknown): boolean {
    const ask = this.#take(id, incarnation);
    ask?.resolve(body);
    return ask !== undefined;
  }

  /** Rejects the ask with that id, or repeats it later if the refusal is temporary. */
  refused(id: number, incarnation: string | undefined, refusal: Refusal): boolean {
    const ask = this.#open.get(id);
    if (ask === undefined || ask.asker.self.incarnation !== incarnation) return false;
    const isNotKept = refusal.code === "aborted" &&
      refusal.details?.["reason"] === ANSWER_NOT_KEPT;
    if (ask.isIdempotent && isNotKept) {
      this.#makeAnew(ask);
      return true;
    }
    const isTemporary = ask.attemptMs !== undefined && mayBeTakenLater(refusal);
    const isOver = refusal.code === "unavailable" && ++ask.unavailable >= ask.unavailableMax;
    if (!isTemporary || isOver) {
      this.#take(id, incarnation)!.reject(refusal.error());
      return true;
    }
    ask.lastRefusal = refusal;
    this.#attemptLater(ask);
    return true;
  }

  /** Rejects the ask with that id for good. */
  fail(id: number, incarnation: string, error: LeatError): void {
    this.#take(id, incarnation)?.reject(error);
  }

  nodeLost(node: string, refusal: Refusal): void {
    for (const { item: { id, asker } } of this.#held.ofNode(node)) {
      this.refused(id, asker.self.incarnation, refusal);
    }
  }

  /** The incarnation has ended: rejects its asks. */
  askerEnded(asker: Cell): void {
    for (const { item: { id } } of this.#held.ofActor(asker)) {
      this.#take(id, asker.self.incarnation)?.reject(asker.endedError());
    }
  }

  clear(): void {
    this.#deadlines.clear();
    this.#attempts.clear();
  }

  /** Makes an ask again with a new id, so that it is handled again, for the rest of its time. */
  #makeAnew(ask: OpenAsk): void {
    this.#take(ask.id, ask.asker.self.incarnation);
    const none = { hold: undefined, deadline: undefined, nextAttempt: undefined };
    const anew: OpenAsk = { ...ask, ...none, id: ++this.#lastId };
    this.#add(anew);
    this.#attemptLater(anew);
  }

  #attempt(ask: OpenAsk): void {
    if (ask.attemptMs !== undefined) {
      const isHasty = this.#world.fault("asks.repeat_at_once");
      this.#scheduleAttempt(ask, isHasty ? 0 : ask.attemptMs);
    }
    try {
      this.#send(ask);
    } catch (error) {
      this.#take(ask.id, ask.asker.self.incarnation)?.reject(LeatError.from(error, "internal"));
    }
  }

  #again(ask: OpenAsk): void {
    ask.nextAttempt = undefined;
    if (this.#open.has(ask.id)) this.#attempt(ask);
  }

  /** Sends an ask after a refusal. */
  #attemptLater(ask: OpenAsk): void {
    const doublings = Math.min(20, ask.refusals++);
    const delayMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** doublings);
    this.#scheduleAttempt(ask, delayMs * (0.5 + this.#random.next() / 2));
  }

  #scheduleAttempt(ask: OpenAsk, delayMs: number): void {
    if (ask.nextAttempt !== undefined) this.#attempts.remove(ask.nextAttempt);
    ask.nextAttempt = this.#attempts.add(this.#world.nowMs() + delayMs, ask);
  }

  #expired(ask: OpenAsk): void {
    const overdueMs = this.#world.nowMs() - ask.deadlineMs;
    const cause = ask.lastRefusal?.error();
    const error = cause?.code === "unavailable"
      ? new LeatError("unavailable", cause.message, { cause })
      : new LeatError(
        "deadline_exceeded",
        `${formatRef(ask.target)} did not answer "${ask.method}" in time`,
        { cause, details: { overdueMs } },
      );
    this.#take(ask.id, ask.asker.self.incarnation)?.reject(error);
  }

  #take(id: number, incarnation: string | undefined): OpenAsk | undefined {
    const ask = this.#open.get(id);
    if (ask === undefined || ask.asker.self.incarnation !== incarnation) return undefined;
    this.#open.delete(id);
    if (ask.hold !== undefined) this.#held.release(ask.hold);
    if (ask.deadline !== undefined) this.#deadlines.remove(ask.deadline);
    if (ask.nextAttempt !== undefined) this.#attempts.remove(ask.nextAttempt);
    if (ask.attemptMs !== undefined) this.#markSettled(ask);
    return ask;
  }

  #markOpen(ask: OpenAsk): void {
    const { repeatable } = ask.asker;
    const open = repeatable.get(ask.targetKey);
    if (open === undefined) repeatable.set(ask.targetKey, [ask.id]);
    else open.push(ask.id);
  }

  #markSettled(ask: OpenAsk): void {
    const { repeatable } = ask.asker;
    const open = repeatable.get(ask.targetKey)!;
    if (open.at(-1) === ask.id) open.pop();
    else open.splice(open.indexOf(ask.id), 1);
    if (open.length === 0 && repeatable.size > TARGETS_KEPT) repeatable.delete(ask.targetKey);
  }
}

/**
 * Whether the refusal is temporary: the receiver was absent or full. A message above a link's size
 * limit (`bytesMax`) would always be refused.
 */
export function mayBeTakenLater({ code, details }: Pick<Refusal, "code" | "details">): boolean {
  return code === "unavailable" ||
    (code === "resource_exhausted" && details?.["bytesMax"] === undefined);
}

/** What a repeatable ask tells its receiver about the asker's earlier asks to it. */
export function settledMarks({ id, asker, targetKey }: OpenAsk): SettledMarks {
  let open: number[] | undefined;
  for (const other of asker.repeatable.get(targetKey)!) {
    if (other >= id) break;
    open ??= [];
    if (open.push(other) >= OPEN_MAX) break;
  }
  if (open === undefined) return { settledBelow: id, open };
  const settledBelow = open[0]!;
  if (open.length < OPEN_MAX) open.push(id);
  // Ids count per node. If these are consecutive, no settled ask lies between them.
  const isDense = open.at(-1)! - settledBelow === open.length - 1;
  return { settledBelow, open: isDense ? undefined : open };
}

/** Deadlines are rounded up to a multiple of this, so that many share a bucket. */
const BUCKET_MS = 8;

/** An added deadline, to be passed to `remove`. */
type Deadline<T> = Member<number, T>;

/**
 * Deadlines on one timer: calls back for items whose deadline has passed, never early, and usually
 * at most one bucket late. Most asks are answered long before their deadline, so adding and
 * removing must be almost free, and removed items must not stay in memory.
 */
export class Deadlines<T> {
  readonly #world: World;
  readonly #expire: (item: T) => void;
  readonly #buckets = new Groups<number, T>();
  #timer: Timer | undefined;
  #armedFor = Infinity;

  constructor(world: World, expire: (item: T) => void) {
    this.#world = world;
    this.#expire = expire;
  }

  /** Adds an item. @param deadlineMs On the world's monotonic clock. */
  add(deadlineMs: number, item: T): Deadline<T> {
    const bucket = Math.ceil(deadlineMs / BUCKET_MS);
    const deadline = this.#buckets.add(bucket, item);
    if (bucket < this.#armedFor) this.#arm(bucket);
    return deadline;
  }

  remove(deadline: Deadline<T>): void {
    this.#buckets.remove(deadline);
    if (this.#buckets.size === 0) this.#disarm();
  }

  clear(): void {
    this.#buckets.clear();
    this.#disarm();
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#armedFor = Infinity;
  }

  #arm(bucket: number): void {
    this.#timer?.cancel();
    this.#armedFor = bucket;
    const delayMs = Math.max(0, bucket * BUCKET_MS - this.#world.nowMs());
    this.#timer = this.#world.timer(delayMs, () => this.#sweep());
  }

  #sweep(): void {
    this.#disarm();
    const now = this.#world.nowMs();
    // If the thread was busy, several buckets may be due: they expire in order.
    const numbers = [...this.#buckets.keys()].filter((number) => number * BUCKET_MS <= now);
    // A callback may remove items. It may add items that are due: they expire in the next sweep.
    const due = numbers.sort((a, b) => a - b).flatMap((number) => this.#buckets.of(number));
    for (const deadline of due) {
      if (this.#buckets.remove(deadline)) this.#expire(deadline.item);
    }
    let next = Infinity;
    for (const bucket of this.#buckets.keys()) next = Math.min(next, bucket);
    if (next < this.#armedFor) this.#arm(next);
  }
}
