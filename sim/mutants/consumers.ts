/**
 * Wrong actors of a DETERMINISTIC stream with several consumers, simulated by changed messages.
 */
import type { ElementSourceProtocol } from "../../actors/worker/protocol.ts";
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { WorkNews } from "../../actors/dispatcher/protocol_heartbeats.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import { DispatcherState } from "../../actors/dispatcher/state/state.ts";
import { asksChanged, changed, type Mutant, repliesChanged } from "./mutant.ts";

type ElementRequest = RequestOf<ElementSourceProtocol, "getElement">;
type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** The mutants of this module. */
export const CONSUMER_MUTANTS: readonly Mutant[] = [
  {
    name: "consumer-for-another",
    wrong: "a consumer that asks for the first consumer's elements",
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
    seed: 82,
    wrong: "consumers that do not send their run id",
    workload: "consumers",
    crashes: ["client", "client"],
    install: () => asksChanged<OpenRequest>("openIteration", ({ runId: _, ...body }) => body),
  },
  {
    name: "runs-forgotten",
    seed: 82,
    wrong: "a dispatcher that forgets which runs were replaced by later ones",
    workload: "consumers",
    crashes: ["client", "client"],
    install: () =>
      changed(DispatcherState.prototype, {
        runOf: () => undefined,
      }),
  },
  {
    name: "restored-without-following",
    wrong: "a dispatcher that lets a restored reader in that names no reader which it replaces",
    workload: "consumers",
    crashes: ["client"],
    install: () =>
      changed(DispatcherState.prototype, ({ readersOf }) => ({
        readersOf(...stream) {
          const readers = readersOf.apply(this, stream);
          return readers && { ...readers, newest: 0 };
        },
      })),
  },
  {
    name: "first-epoch-again",
    wrong: "a dispatcher that makes workers repeat the first epoch in place of each later one",
    workload: "consumers",
    crashes: [],
    install: () =>
      repliesChanged<WorkNews>(
        ({ newTasks = [] }) => newTasks.length > 0,
        (body) => ({
          ...body,
          newTasks: body.newTasks.map((task) => ({ ...task, repetition: 0 })),
        }),
      ),
  },
];
