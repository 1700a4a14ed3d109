/**
 * Coordinated reads at a consumer (paper section 3.6): reads round after round, each from the one
 * task that all consumers read in that round.
 *
 * Schedules agreed with the dispatcher say which task serves a round. A consumer that has accepted
 * a proposed schedule requests none of its rounds before the dispatcher puts the schedule in force.
 * The dispatcher does so after all consumers have reported, so no two tasks serve one round.
 *
 * The training loop gets a round only when the scheduler confirms that all consumers hold their
 * part of it. So for each round of a lost task there are two cases. If all consumers hold the
 * round, they keep it. Otherwise no loop was given it: all drop it, and get it from another task.
 * The schedule that excludes the task lists the kept rounds; a consumer that accepts it takes
 * nothing more from the task.
 *
 * Before its loop sees the end, a consumer reports to the dispatcher at which round the job ends. A
 * new consumer must not take a round after an end that others have reached. So the others confirm
 * its first rounds only when their own loops have received all earlier rounds.
 */
import { LeatError } from "../../../core/error.ts";
import type { ReadFigures, RoundWait } from "../../dispatcher/protocol_figures.ts";
import type { RoundsReport } from "../../dispatcher/protocol_heartbeats.ts";
import type { RoundSchedule } from "../../dispatcher/protocol_schedules.ts";
import { mayBeTakenLater } from "../../runtime/asking/asks.ts";
import type { Ref } from "../../runtime/ref.ts";
import { sleep } from "../../runtime/timers.ts";
import { refusedAnswer } from "../../exactly_once/fetcher.ts";
import {
  type ElementAnswer,
  isFinal,
  ROUNDS_AHEAD_MAX,
  type RoundSourceProtocol,
} from "../../worker/protocol.ts";
import { AbsentConsumers } from "./absent_consumers.ts";
import {
  BUFFER_BYTES_MAX,
  type HeartbeatNews,
  type Reader,
  type ReaderDependencies,
  type TaskChanges,
} from "./reader.ts";
import { TaskFetcher } from "./task_fetcher.ts";
import {
  isServedIn,
  type ReadRound,
  RoundSchedules,
  type ServingTask,
  UNCONFIRMED,
} from "./round_schedules.ts";

/** Default number of rounds requested ahead of the training loop. */
const ROUNDS_AHEAD = 4;
/** How long one confirmation stays open before it is sent again, in ms. */
const CONFIRM_TIMEOUT_MS = 30_000;
/** Pause before a confirmation is sent again to an unreachable source, in ms. */
const CONFIRM_RETRY_MS = 100;

export class RoundReader implements Reader {
  readonly #deps: ReaderDependencies;
  readonly #tasks = new Map<number, ServingTask>();
  readonly #schedules = new RoundSchedules();
  /** Rounds that were requested and not yet given to the training loop, in ascending order. */
  #rounds: ReadRound[] = [];
  readonly #absent = new AbsentConsumers();
  /** The next round to request; unknown until the first schedule. */
  #next = -1;
  /** All consumers end at this round; Infinity until the dispatcher sends it. */
  #end = Infinity;
  #clientId = -1;

  constructor(deps: ReaderDependencies) {
    this.#deps = deps;
  }

  get inFlight(): number {
    return this.#rounds.filter(({ answer }) => answer === undefined).length;
  }

  get earlyBytes(): number {
    return this.#rounds.reduce(
      (sum, { answer }) => sum + (answer?.kind === "element" ? answer.element.byteLength : 0),
      0,
    );
  }

  get tasks(): Iterable<ReadFigures> {
    return this.#tasks.values().map(({ fetcher }) => fetcher.figures);
  }

  get nextRound(): number | undefined {
    return this.#next < 0 ? undefined : this.#next;
  }

  joined(clientId: number): void {
    this.#clientId = clientId;
  }

  report(): RoundsReport {
    const lostTasks = [...this.#tasks.values()].filter((open) => open.lost).map(({ task }) => {
      const round = this.#rounds.find(({ askedFrom }) => askedFrom?.task.taskId === task.taskId);
      return { taskId: task.taskId, ...(round === undefined ? {} : { round: round.number }) };
    });
    const { acceptedVersion, proposed, known } = this.#schedules;
    return {
      kind: "rounds",
      roundsAhead: this.#aheadMax,
      ...(this.#next < 0 ? {} : {
        position: {
          kind: this.#isAtEnd ? "ended" : "reading",
          nextRound: this.#next,
          deliveredRound: this.#delivered,
          waitsFor: this.#waitsFor(),
        },
      }),
      ...(acceptedVersion === undefined ? {} : { acceptedSchedule: acceptedVersion }),
      ...known,
      ...(proposed === undefined ? {} : { heldRounds: this.#heldWithout(proposed) }),
      ...(lostTasks.length === 0 ? {} : { lostTasks }),
    };
  }

  update(
    { news, finished }: Pick<HeartbeatNews, "news" | "finished">,
    changes: TaskChanges,
  ): void {
    if (news?.kind !== "rounds") return;
    const { schedules: inForce, proposed: toAccept, absent, endRound } = news;
    this.#updateTasks(changes);
    // Set before `#absent` changes: if the consumer that reached the end is absent now, no other
    // may continue alone.
    if (endRound !== undefined) this.#end = endRound;
    const { schedules, proposed } = this.#schedules.complete(inForce, toAccept);
    for (const fresh of this.#schedules.add(schedules)) this.#settle(fresh);
    if (this.#next < 0) this.#next = this.#schedules.firstRound ?? -1;
    const isNew = this.#schedules.consider(proposed, this.#next);
    if (isNew) this.#withdraw(this.#schedules.proposed!);
    for (const round of this.#rounds) this.#request(round);
    if (endRound !== undefined) this.#agreeUntil(endRound);
    if (this.#absent.update(absent)) {
      for (const round of this.#rounds) round.confirming = undefined;
      this.#confirmHeld();
    }
    this.#deliver();
    if (finished) this.#endIfNobodyServes();
    this.pump();
    if (isNew) this.#deps.refresh();
  }

  pump(): void {
    const { feed } = this.#deps;
    while (
      this.#next >= 0 && this.#next < this.#schedules.limit && !feed.closed && this.#hasRoom() &&
      this.#isServed(this.#next)
    ) {
      const number = this.#next++;
      const round: ReadRound = { number, askedFrom: undefined, answer: undefined, ...UNCONFIRMED };
      this.#rounds.push(round);
      this.#request(round);
    }
  }

  stop(): void {
    for (const { fetcher } of this.#tasks.values()) fetcher.leave();
    this.#tasks.clear();
    this.#rounds = [];
  }

  /** The first round that the training loop was not given yet. */
  get #delivered(): number {
    return this.#rounds[0]?.number ?? this.#next;
  }

  get #aheadMax(): number {
    const { maxOutstandingRequests = ROUNDS_AHEAD } = this.#deps.options;
    return Math.max(1, Math.min(maxOutstandingRequests, ROUNDS_AHEAD_MAX));
  }

  #hasRoom(): boolean {
    const { feed, options } = this.#deps;
    const { bufferBytesMax = BUFFER_BYTES_MAX } = options;
    const ahead = this.#rounds.length + feed.length;
    return ahead === 0 || ahead < this.#aheadMax &&
        feed.bytes + this.earlyBytes < bufferBytesMax;
  }

  #updateTasks({ removed, added }: TaskChanges): void {
    for (const taskId of removed) {
      this.#tasks.get(taskId)?.fetcher.leave();
      this.#tasks.delete(taskId);
    }
    for (const task of added) {
      const onUnreachable = () => this.#lost(open);
      const fetcher = new TaskFetcher(this.#deps, this.#clientId, task, { faultOf, onUnreachable });
      const open: ServingTask = { task, fetcher, lost: false };
      this.#tasks.set(task.taskId, open);
    }
  }

  /** After this consumer has accepted a schedule: ignores late answers of tasks outside it. */
  #withdraw(proposed: RoundSchedule): void {
    for (const round of this.#rounds) {
      if (round.answer === undefined && !isServedIn(proposed, round)) round.askedFrom = undefined;
    }
  }

  /**
   * Held rounds of tasks that the proposed schedule excludes. If all consumers hold one, it is
   * kept.
   */
  #heldWithout(proposed: RoundSchedule): number[] {
    return this.#rounds.filter((round) =>
      round.answer !== undefined && !isServedIn(proposed, round) &&
      !this.#absent.mayEndBefore(round.number, this.#delivered)
    ).map(({ number }) => number);
  }

  /**
   * Applies a schedule that is in force. Of the rounds of excluded tasks, those that all consumers
   * hold go to the training loops. Those that one of them lacks are dropped by all.
   */
  #settle({ taskIds, kept = [] }: RoundSchedule): void {
    for (const round of this.#rounds) {
      if (isServedIn({ taskIds }, round)) continue;
      if (kept.includes(round.number)) round.agreed = true;
      else Object.assign(round, { askedFrom: undefined, answer: undefined, ...UNCONFIRMED });
    }
  }

  #taskFor(round: number): ServingTask | undefined {
    const taskId = this.#schedules.taskOf(round);
    return taskId === undefined ? undefined : this.#tasks.get(taskId);
  }

  /** Whether a task serves the round and is not lost, as far as this consumer knows. */
  #isServed(round: number): boolean {
    return this.#taskFor(round)?.lost === false;
  }

  /** Requests a round from the task that serves it now, unless that was done before. */
  #request(round: ReadRound): void {
    const open = this.#taskFor(round.number);
    if (round.answer !== undefined || open === undefined || open === round.askedFrom) return;
    round.askedFrom = open;
    this.#deps.context.run(async () => {
      const answer = await this.#fetch(round.number, open);
      if (answer === undefined || round.askedFrom !== open) return;
      round.answer = answer;
      this.#confirmHeld();
    });
  }

  /** Confirms each held round that is not confirmed yet and may be. */
  #confirmHeld(): void {
    // Iterates over a copy, because agreed rounds leave the list.
    for (const round of [...this.#rounds]) {
      if (
        round.answer === undefined || round.confirming ||
        this.#absent.mayEndBefore(round.number, this.#delivered)
      ) continue;
      this.#confirm(round);
    }
  }

  /** The round's element for this consumer; undefined when the task is gone. */
  async #fetch(number: number, open: ServingTask): Promise<ElementAnswer | undefined> {
    try {
      const answer = await open.fetcher.fetch({
        round: number,
        floor: this.#delivered,
        ...this.#absent.fieldsOf(number),
      });
      open.lost = false;
      return answer;
    } catch (error) {
      const failure = LeatError.from(error);
      if (failure.code === "cancelled") return undefined;
      if (!isGone(failure)) return refusedAnswer(failure);
      this.#lost(open);
      return undefined;
    }
  }

  /** Reports that this consumer holds the round, again and again until all consumers hold it. */
  #confirm(round: ReadRound): void {
    const { askedFrom: open } = round;
    const confirming = round.confirming = Symbol();
    if (open === undefined || round.agreed) return;
    const { absent } = this.#absent.fieldsOf(round.number);
    const { numConsumers = 1 } = this.#deps.options.parameters;
    if ((absent?.length ?? 0) + 1 >= numConsumers) return this.#agree(round);
    this.#deps.context.run(async () => {
      const isWanted = () =>
        round.confirming === confirming && round.askedFrom === open && !round.agreed &&
        this.#isListed(open);
      while (isWanted()) {
        const outcome = await this.#tryConfirm(round.number, open, absent);
        if (outcome === "again" || !isWanted()) continue;
        if (outcome !== "confirmed") round.answer = refusedAnswer(outcome);
        this.#agree(round);
      }
    });
  }

  /**
   * Tries once to confirm a round. If the source refuses, the training loop gets the error in place
   * of the round.
   */
  async #tryConfirm(
    round: number,
    open: ServingTask,
    absent: readonly number[] | undefined,
  ): Promise<"confirmed" | "again" | LeatError> {
    const { context, options: { consumerIndex = -1, requestTimeoutMs } } = this.#deps;
    const source = open.task.source as Ref<RoundSourceProtocol>;
    const request = { consumerIndex, round, ...(absent === undefined ? {} : { absent }) };
    const timeoutMs = requestTimeoutMs ?? CONFIRM_TIMEOUT_MS;
    try {
      await context.ask(source, "confirm", request, { timeoutMs });
      open.lost = false;
      return "confirmed";
    } catch (error) {
      const failure = LeatError.from(error);
      // The source may be stopping: it would refuse an immediate retry, too.
      const isAway = isGone(failure) || mayBeTakenLater(failure) ||
        ["cancelled", "deadline_exceeded"].includes(failure.code);
      if (failure.code === "unavailable" || isGone(failure)) this.#lost(open);
      if (isAway) await sleep(context, CONFIRM_RETRY_MS);
      return isAway ? "again" : failure;
    }
  }

  #agree(round: ReadRound): void {
    round.agreed = true;
    this.#deliver();
    if (this.#isAtEnd) this.#deps.refresh();
    this.#confirmHeld();
    this.pump();
  }

  #isListed(open: ServingTask): boolean {
    return this.#tasks.get(open.task.taskId) === open;
  }

  #lost(open: ServingTask): void {
    if (open.lost || !this.#isListed(open)) return;
    open.lost = true;
    this.#deps.refresh();
  }

  #deliver(): void {
    const { feed } = this.#deps;
    for (let round = this.#rounds[0]; round?.agreed; round = this.#rounds[0]) {
      const { answer } = round;
      if (round.number >= this.#end || answer?.kind === "end") break;
      this.#rounds.shift();
      if (answer !== undefined && isFinal(answer)) feed.fail(LeatError.fromWire(answer.error));
      else if (answer?.kind === "element" || answer?.kind === "error") feed.push(answer);
    }
    const isOver = this.#isAtEnd || this.#next < 0 || this.#delivered >= this.#end;
    if (this.#end < Infinity && isOver) feed.end();
  }

  /**
   * Whether the loop has all rounds before the end. It sees the end only after the dispatcher was
   * told.
   */
  get #isAtEnd(): boolean {
    const [round] = this.#rounds;
    return round?.agreed === true && round.answer?.kind === "end";
  }

  /**
   * Marks the held rounds before the end as agreed. The consumer that reached the end was given all
   * of them, so all consumers hold them.
   */
  #agreeUntil(endRound: number): void {
    for (const round of this.#rounds) {
      if (round.number < endRound && round.answer !== undefined) round.agreed = true;
    }
  }

  /**
   * Ends the feed if the schedule in force has no tasks: then all consumers have agreed that no
   * task will ever serve another round.
   */
  #endIfNobodyServes(): void {
    const { newestInForce } = this.#schedules;
    if (newestInForce?.taskIds.length === 0 && this.#rounds[0]?.answer === undefined) {
      this.#deps.feed.end();
    }
  }

  #waitsFor(): RoundWait {
    const { feed } = this.#deps;
    const [round] = this.#rounds;
    if (feed.length > 0 || feed.closed) return "loop";
    if (round?.answer !== undefined) return "consumers";
    return this.#isServed(this.#delivered) && this.#delivered < this.#schedules.limit
      ? "worker"
      : "schedule";
  }
}

function faultOf({ kind }: ElementAnswer): string | undefined {
  const isFit = kind === "element" || kind === "error" || kind === "end" || kind === "skip";
  return isFit ? undefined : `"${kind}" as the answer to a request for a round`;
}

/** Whether the scheduler is gone. For a finished round it would answer `failed_precondition`. */
function isGone({ code, details }: LeatError): boolean {
  return code === "not_found" || details?.["reason"] === "stale_incarnation";
}
