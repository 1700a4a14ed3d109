/** Wrong actors of a coordinated read. */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import { Rounds } from "../../actors/coordinated/rounds.ts";
import type { AnswerOf, RequestOf } from "../../actors/runtime/protocol.ts";
import type { ElementAnswer } from "../../actors/worker/protocol.ts";
import { asksChanged, changed, type Mutant, PerInstance, repliesChanged } from "./mutant.ts";

type Heartbeat = RequestOf<DispatcherProtocol, "clientHeartbeat">;
type News = AnswerOf<DispatcherProtocol, "clientHeartbeat">;

const CONSUMERS = [0, 1, 2];
/** Number of rounds that a consumer reports without holding them. */
const ROUNDS_AHEAD = 3;

/** All of them. */
export const ROUNDS_MUTANTS: readonly Mutant[] = [
  {
    name: "wait-for-nobody",
    wrong: "a scheduler that waits for no consumer other than the asker",
    workload: "rounds",
    crashes: ["worker"],
    install: () => {
      const { confirm } = Rounds.prototype;
      return changed(Rounds.prototype, {
        confirm(round, consumerIndex, absent) {
          confirm.call(this, round, consumerIndex, absent)?.catch(() => {});
          return undefined;
        },
      });
    },
  },
  {
    name: "claim-lost-rounds",
    wrong: "a consumer that reports rounds of lost tasks that it does not hold",
    workload: "rounds",
    crashes: ["worker"],
    install: () =>
      asksChanged<Heartbeat>("clientHeartbeat", (body) => ({
        ...body,
        ...(body.deliveredRound === undefined
          ? {}
          : { deliveredRound: body.deliveredRound + ROUNDS_AHEAD }),
      })),
  },
  {
    name: "hide-held-rounds",
    isSlow: true,
    wrong: "a consumer that does not report the rounds of lost tasks that it holds",
    workload: "rounds",
    crashes: ["worker"],
    install: () => asksChanged<Heartbeat>("clientHeartbeat", ({ heldRounds: _, ...body }) => body),
  },
  {
    name: "keep-no-round",
    isSlow: true,
    wrong: "a dispatcher that keeps no round of a lost task",
    workload: "rounds",
    crashes: ["worker"],
    install: () =>
      news(({ schedules = [], ...body }) => ({
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
      news(({ proposed, schedules = [], ...body }) =>
        proposed === undefined || schedules.length === 0
          ? { ...body, schedules }
          : { ...body, schedules: [...schedules, proposed] }
      ),
  },
  {
    name: "end-alone",
    wrong: "a dispatcher that tells one consumer that no task serves rounds any more",
    workload: "rounds",
    seed: 14,
    crashes: [],
    install: () =>
      repliesChanged<News>(isNews, (body, { target }) => {
        const { finished, schedules = [] } = body;
        const last = schedules.at(-1);
        if (!finished || last === undefined || !target.path.includes("consumer-2")) return body;
        const ended = { ...last, version: last.version + 1, taskIds: [] };
        return { ...body, schedules: [...schedules, ended] };
      }),
  },
  {
    name: "another-round",
    wrong: "a scheduler that gives the last consumer its part of the previous round",
    workload: "rounds",
    crashes: [],
    install: () => {
      const { give } = Rounds.prototype;
      const before = new PerInstance<Rounds, { answer?: ElementAnswer }>(() => ({}));
      return changed(Rounds.prototype, {
        give(round, consumerIndex) {
          const answer = give.call(this, round, consumerIndex);
          if (answer === undefined || consumerIndex !== CONSUMERS.at(-1)) return answer;
          const kept = before.of(this);
          const given = kept.answer ?? answer;
          kept.answer = answer;
          return given;
        },
      });
    },
  },
];

/** Changes the dispatcher's answers to consumers' heartbeats. */
function news(change: (news: News) => unknown): Disposable {
  return repliesChanged<News>(isNews, change);
}

function isNews({ tasks, schedules }: Partial<News>): boolean {
  return tasks !== undefined && schedules !== undefined;
}
