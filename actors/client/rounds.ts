/**
 * Coordinated reads at a consumer (paper section 3.6): round after round, each from the one task
 * that all consumers read in that round.
 *
 * Which task serves a round follows from a list of schedules agreed with the dispatcher. A consumer
 * that has accepted a proposed schedule fetches nothing at or beyond its first round until the
 * dispatcher has heard from all consumers and put it in force, so no round is served by two tasks.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { RoundSchedule, TaskSource } from "../dispatcher/protocol.ts";
import type { ReadFigures } from "../dispatcher/protocol_figures.ts";
import type { ElementAnswer } from "../worker/protocol.ts";
import {
  type HeartbeatNews,
  type HeartbeatReport,
  type Reader,
  type ReaderSurroundings,
  sourceKey,
} from "./reader.ts";
import { TaskFetcher } from "./task_fetcher.ts";

/** Rounds requested ahead of the training loop unless the user says otherwise. */
const ROUNDS_AHEAD = 2;

interface OpenTask {
  readonly task: TaskSource;
  readonly fetcher: TaskFetcher;
  lost: boolean;
}

interface Round {
  readonly number: number;
  /** Whom it was last requested of; undefined while its task is not known. */
  askedOf: OpenTask | undefined;
  answer: ElementAnswer | undefined;
}

/** See the module. */
export class RoundReader implements Reader {
  readonly #around: ReaderSurroundings;
  readonly #tasks = new Map<string, OpenTask>();
  /** Requested and not yet handed to the training loop, in order. */
  #rounds: Round[] = [];
  #schedules: readonly RoundSchedule[] = [];
  #proposed: RoundSchedule | undefined;
  /** The next round to request; unknown until the first schedule. */
  #next = -1;
  #clientId = -1;

  constructor(around: ReaderSurroundings) {
    this.#around = around;
  }

  get expectsNews(): boolean {
    return this.#schedules.length === 0 || this.#proposed !== undefined ||
      !this.#isServed(this.#next) || this.#rounds.some(({ number }) => !this.#isServed(number));
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
    return [...this.#tasks.values()].map(({ fetcher }) => fetcher.figures);
  }

  joined(clientId: number): void {
    this.#clientId = clientId;
  }

  report(): HeartbeatReport {
    const lostTasks = [...this.#tasks.values()].filter((open) => open.lost).map(({ task }) => {
      const round = this.#rounds.find(({ askedOf }) => askedOf?.task.taskId === task.taskId);
      return { taskId: task.taskId, ...(round === undefined ? {} : { round: round.number }) };
    });
    const accepted = this.#proposed ?? this.#schedules.at(-1);
    return {
      ...(this.#next < 0 ? {} : { nextRound: this.#next }),
      ...(accepted === undefined ? {} : { acceptedSchedule: accepted.version }),
      ...(lostTasks.length === 0 ? {} : { lostTasks }),
    };
  }

  learn({ tasks, schedules = [], proposed, finished }: HeartbeatNews): boolean {
    const before = `${this.#schedules.at(-1)?.version} ${this.#proposed?.version}`;
    this.#learnTasks(tasks);
    this.#learnSchedules(schedules);
    const known = this.#schedules.at(-1)?.version ?? -1;
    // A proposal for rounds that were requested already is not accepted; a later one will follow.
    this.#proposed = proposed !== undefined && proposed.version > known &&
        this.#next <= proposed.fromRound
      ? proposed
      : undefined;
    if (finished && this.#rounds.length === 0) this.#around.feed.end();
    this.#deliver();
    this.pump();
    const changed = before !== `${this.#schedules.at(-1)?.version} ${this.#proposed?.version}`;
    if (this.#proposed !== undefined && changed) this.#around.refresh();
    return changed;
  }

  pump(): void {
    const { feed, options } = this.#around;
    const ahead = options.maxOutstandingRequests ?? ROUNDS_AHEAD;
    const limit = this.#proposed?.fromRound ?? Infinity;
    while (
      this.#next >= 0 && this.#next < limit && !feed.closed &&
      this.#rounds.length + feed.length < ahead && this.#isServed(this.#next)
    ) {
      const round: Round = { number: this.#next++, askedOf: undefined, answer: undefined };
      this.#rounds.push(round);
      this.#request(round);
    }
  }

  stop(): void {
    for (const { fetcher } of this.#tasks.values()) fetcher.leave();
    this.#tasks.clear();
  }

  #learnTasks(tasks: readonly TaskSource[]): void {
    const listed = new Map(tasks.map((task) => [sourceKey(task), task]));
    for (const [key, open] of this.#tasks) {
      if (listed.has(key)) continue;
      open.fetcher.leave();
      this.#tasks.delete(key);
    }
    for (const [key, task] of listed) {
      if (this.#tasks.has(key)) continue;
      const lost = () => this.#lost(key);
      const fetcher = new TaskFetcher(this.#around, this.#clientId, task, {
        onUnreachable: lost,
      });
      this.#tasks.set(key, { task, fetcher, lost: false });
    }
  }

  /**
   * In a new list of schedules others may stand for tasks that were lost: what those had not answered
   * is requested again, so that no consumer misses a round that another one got.
   */
  #learnSchedules(schedules: readonly RoundSchedule[]): void {
    const newest = schedules.at(-1);
    if (newest === undefined) return;
    const known = this.#schedules.at(-1)?.version ?? -1;
    if (newest.version > known) this.#schedules = schedules;
    if (this.#next < 0) this.#next = newest.fromRound;
    for (const round of this.#rounds) this.#request(round);
  }

  #taskFor(round: number): OpenTask | undefined {
    const schedule = this.#schedules.findLast((candidate) => candidate.fromRound <= round);
    const taskId = schedule?.taskIds[round % Math.max(1, schedule.taskIds.length)];
    for (const open of this.#tasks.values()) if (open.task.taskId === taskId) return open;
    return undefined;
  }

  /** Whether the task that serves the round is there, as far as this consumer knows. */
  #isServed(round: number): boolean {
    return this.#taskFor(round)?.lost === false;
  }

  /** Requests a round of the task that serves it now, unless that was done before. */
  #request(round: Round): void {
    const open = this.#taskFor(round.number);
    if (round.answer !== undefined || open === undefined || open === round.askedOf) return;
    round.askedOf = open;
    this.#around.context.run(async () => {
      const answer = await this.#fetch(round.number, open);
      if (answer === undefined || round.askedOf !== open) return;
      round.answer = answer;
      this.#deliver();
      this.pump();
    });
  }

  /** The round's element for this consumer; undefined when the task is gone. */
  async #fetch(number: number, open: OpenTask): Promise<ElementAnswer | undefined> {
    try {
      const answer = await open.fetcher.fetch({ round: number });
      open.lost = false;
      return answer;
    } catch (error) {
      const failure = LeatError.from(error);
      if (failure.code === "cancelled") return undefined;
      if (failure.code !== "not_found" && failure.details?.["reason"] !== "stale_incarnation") {
        return { kind: "error", error: failure.toWire() };
      }
      this.#lost(sourceKey(open.task));
      return undefined;
    }
  }

  #lost(key: string): void {
    const open = this.#tasks.get(key);
    if (open === undefined || open.lost) return;
    open.lost = true;
    this.#around.refresh();
  }

  #deliver(): void {
    const { feed } = this.#around;
    for (let round = this.#rounds[0]; round?.answer !== undefined; round = this.#rounds[0]) {
      this.#rounds.shift();
      const { answer } = round;
      if (answer.kind === "end") feed.end();
      else if (answer.kind === "element" || answer.kind === "error") feed.push(answer);
    }
  }
}
