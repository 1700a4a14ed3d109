/** Wrong actors of a coordinated read. */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import { Rounds } from "../../actors/coordinated/rounds.ts";
import type { RoundsNews, RoundsReport } from "../../actors/dispatcher/protocol_heartbeats.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import type { AnswerOf, RequestOf } from "../../actors/runtime/protocol.ts";
import type { ElementAnswer } from "../../actors/worker/protocol.ts";
import { asksChanged, changed, type Mutant, PerInstance, repliesChanged } from "./mutant.ts";

type Heartbeat = RequestOf<DispatcherProtocol, "clientHeartbeat">;
type Answer = AnswerOf<DispatcherProtocol, "clientHeartbeat">;

const CONSUMERS = [0, 1, 2];
/** Number of rounds that a consumer reports without holding them. */
const ROUNDS_AHEAD = 3;

/** The mutants of this module. */
export const ROUNDS_MUTANTS: readonly Mutant[] = [
  {
    name: "wait-for-nobody",
    wrong: "a scheduler that waits for no consumer other than the asker",
    workload: "rounds",
    crashes: ["worker"],
    install: () =>
      changed(Rounds.prototype, ({ confirm }) => ({
        confirm(round, consumerIndex, absent) {
          confirm.call(this, round, consumerIndex, absent)?.catch(() => {});
          return undefined;
        },
      })),
  },
  {
    name: "claim-lost-rounds",
    wrong: "a consumer that reports rounds of lost tasks that it does not hold",
    workload: "rounds",
    crashes: ["worker"],
    install: () =>
      reports(({ position, ...report }) => ({
        ...report,
        ...(position === undefined ? {} : {
          position: { ...position, deliveredRound: position.deliveredRound + ROUNDS_AHEAD },
        }),
      })),
  },
  {
    name: "hide-held-rounds",
    isSlow: true,
    wrong: "a consumer that does not report the rounds of lost tasks that it holds",
    workload: "rounds",
    crashes: ["worker"],
    install: () => reports(({ heldRounds: _, ...report }) => report),
  },
  {
    name: "keep-no-round",
    isSlow: true,
    wrong: "a dispatcher that keeps no round of a lost task",
    workload: "rounds",
    crashes: ["worker"],
    install: () =>
      news(({ schedules, ...body }) => ({
        ...body,
        schedules: schedules.map(({ kept: _, ...schedule }) => schedule),
      })),
  },
  {
    name: "commit-unaccepted",
    wrong: "a dispatcher that commits a schedule that no consumer has accepted",
    workload: "rounds",
    crashes: ["worker"],
    install: () =>
      news(({ proposed, schedules, ...body }) =>
        proposed === undefined || schedules.length === 0
          ? { ...body, schedules }
          : { ...body, schedules: [...schedules, proposed] }
      ),
  },
  {
    name: "end-alone",
    wrong: "a dispatcher that tells one consumer that no task serves rounds any more",
    workload: "rounds",
    seed: 144,
    crashes: [],
    install: () =>
      news((news, { finished }, { target }) => {
        const { schedules } = news;
        const last = schedules.at(-1);
        if (!finished || last === undefined || !target.path.includes("consumer-2")) return news;
        const ended = { ...last, version: last.version + 1, taskIds: [] };
        return { ...news, schedules: [...schedules, ended] };
      }),
  },
  {
    name: "another-round",
    wrong: "a scheduler that gives the last consumer its part of the previous round",
    workload: "rounds",
    crashes: [],
    install: () => {
      const before = new PerInstance<Rounds, { answer?: ElementAnswer }>(() => ({}));
      return changed(Rounds.prototype, ({ give }) => ({
        give(round, consumerIndex) {
          const answer = give.call(this, round, consumerIndex);
          if (answer === undefined || consumerIndex !== CONSUMERS.at(-1)) return answer;
          const kept = before.of(this);
          const given = kept.answer ?? answer;
          kept.answer = answer;
          return given;
        },
      }));
    },
  },
  {
    name: "drop-a-round",
    wrong: "a scheduler that drops the elements of every third round, as if it were late",
    workload: "rounds",
    crashes: [],
    install: () => {
      const filled = new PerInstance<Rounds, { count: number }>(() => ({ count: 0 }));
      return changed(Rounds.prototype, ({ fill }) => ({
        fill(round, answers) {
          const isDropped = ++filled.of(this).count % 3 === 0;
          fill.call(this, round, isDropped ? answers.map(() => ({ kind: "skip" })) : answers);
        },
      }));
    },
  },
];

/** Changes consumers' reports. */
function reports(change: (report: RoundsReport) => RoundsReport): Disposable {
  return asksChanged<Heartbeat>("clientHeartbeat", (body) => ({
    ...body,
    ...(body.report?.kind === "rounds" ? { report: change(body.report) } : {}),
  }));
}

/** Changes the news that the dispatcher sends to consumers. */
function news(
  change: (news: RoundsNews, answer: Answer, envelope: Envelope) => RoundsNews,
): Disposable {
  return repliesChanged<Answer & { readonly news: RoundsNews }>(
    ({ news }) => news?.kind === "rounds",
    (body, envelope) => ({ ...body, news: change(body.news, body, envelope) }),
  );
}
