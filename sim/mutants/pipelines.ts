/**
 * Wrong actors that a pipeline drawn at random has to show, by what they would say.
 *
 * @module
 */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { AnswerOf } from "../../actors/runtime/protocol.ts";
import { type Mutant, repliesChanged } from "./mutant.ts";

type SplitAnswer = AnswerOf<DispatcherProtocol, "getSplit">;

/** See the module. */
export const PIPELINE_MUTANTS: readonly Mutant[] = [
  {
    name: "skipped-split",
    wrong: "a dispatcher that hands out the split before the one that is next",
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
];
