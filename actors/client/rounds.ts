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
import type { ElementFetcher } from "../elements/fetcher.ts";
import type { ElementAnswer } from "../worker/protocol.ts";
import {
  fetcherOf,
  type HeartbeatNews,
  type HeartbeatReport,
  type Reader,
  type ReaderSurroundings,
  sourceKey,
} from "./reader.ts";

/** Rounds requested ahead of the training loop unless the user says otherwise. */
const ROUNDS_AHEAD = 2;

interface OpenTask {
  readonly task: TaskSource;
  readonly fetcher: ElementFetcher;
  lost: boolean;
}

interface Round {
  readonly number: number;
  readonly taskId: number;
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
      this.#rounds.some((round) => this.#taskOf(round.taskId)?.lost ?? true);
  }

  joined(clientId: number): void {
    this.#clientId = clientId;
  }

  report(): HeartbeatReport {
    const lostTasks = [...this.#tasks.values()].filter((open) => open.lost).map(({ task }) => {
      const round = this.#rounds.find((candidate) => candidate.taskId === task.taskId);
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
      this.#rounds.length + feed.length < ahead
    ) {
      const taskId = this.#taskIdFor(this.#next);
      const open = taskId === undefined ? undefined : this.#taskOf(taskId);
      if (taskId === undefined || open === undefined || open.lost) return;
      const round: Round = { number: this.#next++, taskId, answer: undefined };
      this.#rounds.push(round);
      this.#fetch(round, open);
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
      const fetcher = fetcherOf(this.#around, this.#clientId, task, lost);
      this.#tasks.set(key, { task, fetcher, lost: false });
    }
  }

  /** A schedule in force from a round on: what was not fetched before it from a lost task is skipped. */
  #learnSchedules(schedules: readonly RoundSchedule[]): void {
    const known = this.#schedules.at(-1)?.version ?? -1;
    const newest = schedules.at(-1);
    if (newest === undefined || newest.version <= known) return;
    this.#schedules = schedules;
    if (this.#next < 0) {
      this.#next = newest.fromRound;
      return;
    }
    for (const round of this.#rounds) {
      if (round.answer === undefined && !newest.taskIds.includes(round.taskId)) {
        round.answer = { kind: "skip" };
      }
    }
    this.#rounds = this.#rounds.filter((round) => round.number < newest.fromRound);
    this.#next = Math.max(
      Math.min(this.#next, newest.fromRound),
      (this.#rounds.at(-1)?.number ?? -1) + 1,
    );
  }

  #taskIdFor(round: number): number | undefined {
    const schedule = this.#schedules.findLast((candidate) => candidate.fromRound <= round);
    return schedule?.taskIds[round % Math.max(1, schedule.taskIds.length)];
  }

  #taskOf(taskId: number): OpenTask | undefined {
    for (const open of this.#tasks.values()) if (open.task.taskId === taskId) return open;
    return undefined;
  }

  #fetch(round: Round, open: OpenTask): void {
    this.#around.context.run(async () => {
      try {
        const answer = await open.fetcher.fetch(round.number);
        open.lost = false;
        round.answer ??= answer;
      } catch (error) {
        const failure = LeatError.from(error);
        if (failure.code === "cancelled") return;
        if (failure.code === "not_found" || failure.details?.["reason"] === "stale_incarnation") {
          return this.#lost(sourceKey(open.task));
        }
        round.answer ??= { kind: "error", error: failure.toWire() };
      }
      this.#deliver();
      this.pump();
    });
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
      else if (answer.kind !== "skip") feed.push(answer);
    }
  }
}
