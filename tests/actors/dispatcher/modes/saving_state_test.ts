/** The progress of a save, as the journal's records make it. */
import {
  begun,
  RUN_SPLITS_MAX,
  type Saving,
} from "../../../../actors/dispatcher/modes/save/saving_state.ts";
import { assertEquals } from "../../../assert.ts";

Deno.test("a save that resumes writes a long gap again in runs that fit into messages", () => {
  const iteration: { saving: Saving | null } = { saving: null };
  const tables = { iterations: new Map([[7, iteration]]) };
  const gap = 2 * RUN_SPLITS_MAX + 10;
  const written = [{ first: 5 + gap, count: 2, attempt: "a" }];
  begun(tables as never, {
    ...{ type: "save_begun", iterationId: 7, id: "1", entered: 5, entries: 1, written },
    ...{ elements: 0, sizeBytes: 0 },
  });
  const { lost, next, splits } = iteration.saving!;
  assertEquals(lost.map(({ count }) => count), [RUN_SPLITS_MAX, RUN_SPLITS_MAX, 10]);
  assertEquals(lost.map(({ first }) => first - 5), [0, RUN_SPLITS_MAX, 2 * RUN_SPLITS_MAX]);
  assertEquals([next, splits], [5 + gap + 2, 7]);
});
