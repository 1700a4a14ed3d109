/**
 * Wrong actors of one DETERMINISTIC stream with several consumers, by what they would say.
 *
 * @module
 */
import type { ElementSourceProtocol } from "../../actors/worker/protocol.ts";
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { AnswerOf, RequestOf } from "../../actors/runtime/protocol.ts";
import { asksChanged, type Mutant, repliesChanged } from "./mutant.ts";

type ElementRequest = RequestOf<ElementSourceProtocol, "getElement">;
type News = AnswerOf<DispatcherProtocol, "workerHeartbeat">;

/** See the module. */
export const CONSUMER_MUTANTS: readonly Mutant[] = [
  {
    name: "consumer-for-another",
    wrong: "a consumer that asks for what is the first one's",
    workload: "consumers",
    crashes: [],
    install: () =>
      asksChanged<ElementRequest>("getElement", (body) => ({
        ...body,
        ...(body.consumerIndex === undefined ? {} : { consumerIndex: 0 }),
      })),
  },
  {
    name: "first-epoch-again",
    wrong:
      "a dispatcher that has workers make the first epoch again in the place of each later one",
    workload: "consumers",
    crashes: [],
    install: () =>
      repliesChanged<News>(
        ({ newTasks = [] }) => newTasks.length > 0,
        (body) => ({
          ...body,
          newTasks: body.newTasks.map((task) => ({ ...task, repetition: 0 })),
        }),
      ),
  },
];
