/** What a task makes of a refused request for a split. */
import { OF_ITERATION, type TaskDefinition } from "../../../../actors/dispatcher/protocol.ts";
import type { ActorContext } from "../../../../actors/runtime/actor.ts";
import { TASK_FENCED } from "../../../../actors/worker/runner/runner.ts";
import { TaskSplits } from "../../../../actors/worker/tasks/task_splits.ts";
import { LeatError, type LeatErrorCode } from "../../../../core/error.ts";
import { assertEquals, assertRejects } from "../../../assert.ts";

/** The error of a task whose dispatcher answers with an error. */
async function refusedWith(
  code: LeatErrorCode,
  details?: Record<string, unknown>,
): Promise<LeatError> {
  const answer = new LeatError(code, "no", details === undefined ? {} : { details });
  const context = {
    ask: () => Promise.reject(answer),
    world: { nowMs: () => 0, fault: () => false, log: () => {} },
  } as unknown as ActorContext;
  const splits = new TaskSplits(context, { taskId: 1 } as TaskDefinition, {
    dispatcher: { node: "d", path: "/d" },
    dispatcherTimeoutMs: 1,
  });
  return await assertRejects(() => splits.next(0, 0, () => true), LeatError);
}

Deno.test("a task whose worker is refused is fenced; one whose splits cannot be listed is not", async () => {
  for (const code of ["unauthenticated", "permission_denied"] as const) {
    assertEquals((await refusedWith(code)).details, { reason: TASK_FENCED });
    const ofData = await refusedWith(code, { [OF_ITERATION]: true });
    assertEquals([ofData.code, ofData.details?.["reason"]], [code, undefined]);
  }
  assertEquals((await refusedWith("unavailable")).code, "unavailable");
});
