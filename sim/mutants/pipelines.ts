/** Wrong actors that random pipelines must reveal, simulated by changed messages. */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import { Repeats } from "../../actors/exactly_once/repeats.ts";
import type { AnswerOf } from "../../actors/runtime/protocol.ts";
import { changed, type Mutant, PerInstance, repliesChanged } from "./mutant.ts";

type SplitAnswer = AnswerOf<DispatcherProtocol, "getSplit">;

/** The mutants of this module. */
export const PIPELINE_MUTANTS: readonly Mutant[] = [
  {
    name: "skipped-split",
    wrong: "a dispatcher that assigns the split before the next one",
    workload: "pipelines",
    crashes: [],
    install: () =>
      repliesChanged<SplitAnswer>(
        ({ split }) => (split?.index ?? 0) > 0,
        (body) => {
          const { start, stop, index } = body.split!;
          const before = { start: 2 * start - stop, stop: start, index: index - 1 };
          return { ...body, split: { ...body.split!, ...before } };
        },
      ),
  },
  {
    name: "drop-for-newcomers",
    wrong: "a task that drops its next element whenever another client joins",
    workload: "pipelines",
    crashes: ["client"],
    seed: 7,
    install: () => {
      const seen = new PerInstance<Repeats, Set<number>>(() => new Set());
      return changed(Repeats.prototype, ({ answer }) => ({
        answer(request, produce, asker) {
          const clients = seen.of(this);
          const isNew = clients.size > 0 && !clients.has(request.clientId);
          clients.add(request.clientId);
          if (isNew) Promise.resolve(produce()).catch(() => {});
          return answer.call(this, request, produce, asker);
        },
      }));
    },
  },
];
