/** Coordinated reads (paper section 3.6), with the sharding policy of another mode. */
import type { Consumers } from "../consumers.ts";
import type { Client, Iteration } from "../../state/entities.ts";
import { whyNotBegun } from "../missing_consumers.ts";
import type { ConsumerPosition, RoundsDescription } from "../../protocol_figures.ts";
import type { RecordOf } from "../../journal/records.ts";
import type { ReaderReport, RoundsNews, RoundsReport } from "../../protocol_heartbeats.ts";
import { RoundIndex } from "./round_index.ts";
import { describeRounds } from "./round_places.ts";
import { handleRoundsReport, reviewRounds } from "./rounds.ts";
import type { Tables } from "../../state/tables.ts";
import type { Transaction } from "../../transaction.ts";
import {
  invalid,
  type JoinFacts,
  type Mode,
  type OpenRequest,
  type ReportContext,
  type Subject,
} from "../mode.ts";
import { parametersOf } from "../../jobs/iterations.ts";
import type { DispatcherState } from "../../state/state.ts";
import type { RoundSchedule, ScheduleNews } from "../../protocol_schedules.ts";

/** The mode of jobs whose consumers read in rounds, with the sharding of another mode. */
export function coordinated(Sharding: new () => Mode): new () => Mode {
  return class CoordinatedMode extends Sharding {
    override check(request: OpenRequest, facts: JoinFacts): void {
      super.check(request, facts);
      if (request.parameters.sharing) {
        throw invalid(
          "A job can share its data between trainers or coordinate reads, but not both",
        );
      }
      if (facts.cardinality < 0) return;
      throw invalid(
        `Coordinated reads need a dataset without end, and this one has ${facts.cardinality} elements; ` +
          `add .repeat() before .distribute()`,
      );
    }

    override handleReport(
      tx: Transaction,
      client: Client,
      report: ReaderReport | undefined,
      { consumers, lostTaskTimeoutMs }: ReportContext,
    ): void {
      if (report?.kind === "rounds") {
        handleRoundsReport(tx, client, consumers, report, lostTaskTimeoutMs);
      }
      reviewRounds(tx, tx.state.iterations.get(client.iterationId)!, consumers);
    }

    override review(tx: Transaction, iteration: Iteration, consumers: Consumers): void {
      reviewRounds(tx, iteration, consumers);
    }

    override newsFor(
      { state, iteration }: Subject,
      client: Client,
      report: ReaderReport | undefined,
    ): RoundsNews {
      const { ended } = iteration.rounds;
      const known = report?.kind === "rounds" ? report : undefined;
      return {
        kind: "rounds",
        ...scheduleNews(state, client, iteration, known),
        ...(ended === null ? {} : { endRound: ended }),
        absent: absentConsumers(state, client, iteration),
      };
    }

    override whyWaiting(subject: Subject, windowSplits: number): string | null {
      return whyNotBegun(subject.state, subject.iteration) ??
        super.whyWaiting(subject, windowSplits);
    }

    override describeRounds(
      { state, iteration }: Subject,
      positionOf: (clientId: number) => ConsumerPosition | undefined,
    ): RoundsDescription {
      return describeRounds(state, iteration, positionOf);
    }

    override roundIndexFor({ rounds }: Iteration): RoundIndex {
      return new RoundIndex(rounds);
    }

    override clientReleased(
      _tables: Tables,
      { rounds }: Iteration,
      { firstVersion }: Client,
      { nextRound, unreported = 0 }: RecordOf<"client_released">,
    ): void {
      // A client begins ahead of the others. It may have requested its first rounds unreported.
      const first = rounds.schedules.find(({ version }) => version === firstVersion);
      rounds.reached = Math.max(rounds.reached, nextRound ?? first?.fromRound ?? 0);
      if (firstVersion === null || unreported === 0) return;
      const roundsAhead = Math.max(unreported, rounds.vanished?.roundsAhead ?? 0);
      rounds.vanished = { version: rounds.lastVersion + 1, roundsAhead };
    }
  };
}

type Absent = RoundsNews["absent"];

/**
 * The consumers that take no part: those that have left, and later ones before their first round.
 */
function absentConsumers(
  state: DispatcherState,
  { firstVersion: ownVersion }: Client,
  iteration: Iteration,
): Absent {
  const index = state.roundIndexOf(iteration.iterationId);
  if (ownVersion === null || index === undefined) return [];
  const { numConsumers = 0 } = parametersOf(state, iteration);
  const later: Absent[number][] = [];
  for (const [firstVersion, clients] of index.startedWith) {
    if (firstVersion <= ownVersion) continue;
    const first = iteration.rounds.schedules.find(({ version }) => version === firstVersion);
    // A schedule is kept while rounds before it may still be read.
    if (first === undefined) continue;
    for (const { consumerIndex } of clients) {
      later.push({ consumerIndex: consumerIndex!, beforeRound: first.fromRound });
    }
  }
  if (index.started === numConsumers) return later;
  const present = new Set(
    [...index.startedWith.values()].flatMap((clients) =>
      [...clients].map(({ consumerIndex }) => consumerIndex)
    ),
  );
  const gone = Array.from({ length: numConsumers }, (_, index) => index)
    .filter((index) => !present.has(index));
  return [...later, ...gone.map((consumerIndex) => ({ consumerIndex, beforeRound: null }))];
}

type KnownSchedules = Pick<RoundsReport, "scheduleInForce" | "knownSchedule">;

/** The schedules in force and the proposal for a client. */
function scheduleNews(
  state: DispatcherState,
  { firstVersion }: Client,
  { iterationId, rounds: { schedules, proposal } }: Iteration,
  { scheduleInForce = -1, knownSchedule = -1 }: KnownSchedules = {},
): Pick<RoundsNews, "schedules" | "proposed"> {
  const index = state.roundIndexOf(iterationId);
  const areOldKnown = index !== undefined && index.replacedAt <= scheduleInForce;
  /**
   * Leaves out the tasks if the consumer knows this version, or sends only the changes if it can.
   */
  const asProposed = (schedule: RoundSchedule): ScheduleNews => {
    const { taskIds: _, ...news } = schedule;
    const { version } = schedule;
    if (version === knownSchedule) return news;
    const change = index?.changesSince(knownSchedule, version);
    if (change === undefined) return schedule;
    return { ...news, added: [...change.added], removed: [...change.removed] };
  };
  const inForce = (schedule: RoundSchedule): ScheduleNews => {
    const { taskIds: _, ...news } = schedule;
    if (schedule.version <= scheduleInForce && areOldKnown) return news;
    return schedule === schedules.at(-1) ? asProposed(schedule) : schedule;
  };
  return {
    schedules: firstVersion === null
      ? []
      : schedules.filter(({ version }) => version >= firstVersion).map(inForce),
    ...(proposal === null ? {} : { proposed: asProposed(proposal.schedule) }),
  };
}
