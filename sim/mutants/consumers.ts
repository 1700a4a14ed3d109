/**
 * Wrong actors of one DETERMINISTIC stream with several consumers, by what they would say.
 *
 * @module
 */
import type { ElementSourceProtocol } from "../../actors/worker/protocol.ts";
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { AnswerOf, RequestOf } from "../../actors/runtime/protocol.ts";
import { DispatcherState } from "../../actors/dispatcher/state.ts";
import { asksChanged, changed, type Mutant, repliesChanged } from "./mutant.ts";

type ElementRequest = RequestOf<ElementSourceProtocol, "getElement">;
type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;
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
    name: "runs-mixed",
    seed: 18,
    wrong: "consumers that do not say which of them were started together",
    workload: "consumers",
    crashes: ["client", "client"],
    install: () => asksChanged<OpenRequest>("openIteration", ({ runId: _, ...body }) => body),
  },
  {
    name: "runs-forgotten",
    seed: 18,
    wrong: "a dispatcher that does not remember which runs were followed by others",
    workload: "consumers",
    crashes: ["client", "client"],
    install: () =>
      changed(DispatcherState.prototype, {
        runOf: () => undefined,
      }),
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
