/**
 * Coordinated reads (paper section 3.6): in each round all consumers read batches of one task. The workers
 * share the dataset as in another mode.
 *
 * @module
 */
import type { Shard } from "../../../data/sharding_policy.ts";
import type { Random } from "../../runtime/world.ts";
import { absentConsumers } from "../absent_consumers.ts";
import type { Consumers } from "../consumers.ts";
import type { Client, Iteration, Task, TaskOfIteration } from "../entities.ts";
import { whyNotBegun } from "../missing_consumers.ts";
import type { ConsumerPlace, RoundsDescription, TaskDescription } from "../protocol_figures.ts";
import type { RecordOf } from "../records.ts";
import { RoundIndex } from "../round_index.ts";
import { describeRounds } from "../round_places.ts";
import { heardConsumer, reviewRounds } from "../rounds.ts";
import { scheduleNews } from "../schedule_news.ts";
import type { SplitAnswer, SplitRequest } from "../splits.ts";
import type { DispatcherState } from "../state.ts";
import type { Tables } from "../tables.ts";
import type { Turn } from "../turn.ts";
import {
  type ClientNews,
  type HeardWith,
  type HeartbeatRequest,
  invalid,
  type IterationDescription,
  type JoinFacts,
  Mode,
  type OpenRequest,
} from "./mode.ts";

/** See the module. */
export class CoordinatedMode extends Mode {
  readonly #sharding: Mode;
  override readonly hasFixedWorkers: boolean;
  override readonly takesPolicy: boolean;
  override readonly needsSplits: boolean;

  /** @param sharding How its workers share the dataset. */
  constructor(sharding: Mode) {
    super();
    this.#sharding = sharding;
    this.hasFixedWorkers = sharding.hasFixedWorkers;
    this.takesPolicy = sharding.takesPolicy;
    this.needsSplits = sharding.needsSplits;
  }

  override check(request: OpenRequest, facts: JoinFacts): void {
    this.#sharding.check(request, facts);
    if (request.parameters.sharing) {
      throw invalid(
        "A job can share its data between trainers or coordinate reads, but not both",
      );
    }
    if (facts.cardinality < 0) return;
    throw invalid(
      `Coordinated reads need a dataset without end, and this one has ${facts.cardinality} elements; add ` +
        `.repeat() before .distribute()`,
    );
  }

  override seedForTask(iteration: Iteration, random: Random): string {
    return this.#sharding.seedForTask(iteration, random);
  }

  override assignSplit(
    turn: Turn,
    of: TaskOfIteration,
    request: SplitRequest,
    windowSplits: number,
  ): SplitAnswer {
    return this.#sharding.assignSplit(turn, of, request, windowSplits);
  }

  override hasWorkFor(state: DispatcherState, iteration: Iteration, worker: string): boolean {
    return this.#sharding.hasWorkFor(state, iteration, worker);
  }

  override shardOf(
    state: DispatcherState,
    iteration: Iteration,
    worker: string,
  ): Shard | undefined {
    return this.#sharding.shardOf(state, iteration, worker);
  }

  override isDone(state: DispatcherState, iteration: Iteration): boolean {
    return this.#sharding.isDone(state, iteration);
  }

  override namePiece(piece: number | null): string {
    return this.#sharding.namePiece(piece);
  }

  override whyNothingFor(
    state: DispatcherState,
    iteration: Iteration,
    worker: string,
  ): string | undefined {
    return this.#sharding.whyNothingFor(state, iteration, worker);
  }

  override heard(
    turn: Turn,
    client: Client,
    report: HeartbeatRequest,
    { consumers, lostTaskTimeoutMs }: HeardWith,
  ): void {
    heardConsumer(turn, client, consumers, report, lostTaskTimeoutMs);
    this.review(turn, turn.state.iterations.get(client.iterationId)!, consumers);
  }

  override review(turn: Turn, iteration: Iteration, consumers: Consumers): void {
    reviewRounds(turn, iteration, consumers);
  }

  override newsFor(
    state: DispatcherState,
    client: Client,
    report: HeartbeatRequest,
  ): Partial<ClientNews> {
    const iteration = state.iterations.get(client.iterationId)!;
    const { ended } = iteration.rounds;
    const absent = absentConsumers(state, client, iteration);
    return {
      ...scheduleNews(state, client, iteration, report),
      ...(ended === null ? {} : { endRound: ended }),
      ...(absent.length === 0 ? {} : { absent }),
    };
  }

  override whyWaiting(state: DispatcherState, iteration: Iteration): string | null {
    return whyNotBegun(state, iteration);
  }

  override describeRounds(
    state: DispatcherState,
    iteration: Iteration,
    placeOf: (clientId: number) => ConsumerPlace | undefined,
  ): RoundsDescription {
    return describeRounds(state, iteration, placeOf);
  }

  override roundIndexFor({ rounds }: Iteration): RoundIndex {
    return new RoundIndex(rounds);
  }

  override clientReleased(
    _tables: Tables,
    { rounds }: Iteration,
    _client: Client,
    { nextRound }: RecordOf<"client_released">,
  ): void {
    rounds.reached = Math.max(rounds.reached, nextRound ?? 0);
  }

  override taskCompleted(
    iteration: Iteration,
    task: Task,
    workers: readonly string[] | null,
  ): void {
    this.#sharding.taskCompleted(iteration, task, workers);
  }

  override describe(
    state: DispatcherState,
    iteration: Iteration,
    tasks: readonly TaskDescription[],
  ): Partial<IterationDescription> {
    return this.#sharding.describe(state, iteration, tasks);
  }
}
