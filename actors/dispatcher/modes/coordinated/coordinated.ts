/** Coordinated reads (paper section 3.6), with the sharding policy of another mode. */
import { absentConsumers } from "./absent_consumers.ts";
import type { Consumers } from "../consumers.ts";
import type { Client, Iteration } from "../../state/entities.ts";
import { whyNotBegun } from "../missing_consumers.ts";
import type { ConsumerPosition, RoundsDescription } from "../../protocol_figures.ts";
import type { RecordOf } from "../../journal/records.ts";
import type { ReaderReport, RoundsNews } from "../../protocol_heartbeats.ts";
import { RoundIndex } from "./round_index.ts";
import { describeRounds } from "./round_places.ts";
import { heardConsumer, reviewRounds } from "./rounds.ts";
import { scheduleNews } from "./schedule_news.ts";
import type { Tables } from "../../state/tables.ts";
import type { Transaction } from "../../transaction.ts";
import {
  type HeardWith,
  invalid,
  type JoinFacts,
  type Mode,
  type OpenRequest,
  type Subject,
} from "../mode.ts";

/** The mode of jobs with the given sharding mode whose consumers read in rounds. */
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

    override heard(
      tx: Transaction,
      client: Client,
      report: ReaderReport | undefined,
      { consumers, lostTaskTimeoutMs }: HeardWith,
    ): void {
      if (report?.kind === "rounds") {
        heardConsumer(tx, client, consumers, report, lostTaskTimeoutMs);
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

    override whyWaiting({ state, iteration }: Subject): string | null {
      return whyNotBegun(state, iteration);
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
      rounds.reached = Math.max(rounds.reached, nextRound ?? 0);
      if (firstVersion === null || unreported === 0) return;
      const roundsAhead = Math.max(unreported, rounds.vanished?.roundsAhead ?? 0);
      rounds.vanished = { version: rounds.lastVersion + 1, roundsAhead };
    }
  };
}
