/** What a client reports if its first request to a dispatcher is not accepted in time. */
import {
  FIRST_ANSWER_TIMEOUT_MS,
  firstAnswer,
  joinIteration,
} from "../../../actors/client/first_answer.ts";
import { TO_FOLLOW } from "../../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../../core/error.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { settle, TestCluster } from "../dispatcher/lib.ts";

/** Opens a job as a client does, and returns its error once the time is over. */
async function errorOf(cluster: TestCluster, target = cluster.dispatcher): Promise<LeatError> {
  const request = cluster.openRequest("1", { jobName: "another" });
  const rejected = assertRejects(
    () =>
      firstAnswer(
        target,
        FIRST_ANSWER_TIMEOUT_MS,
        (options) => cluster.system.ask(target, "openIteration", request, options),
      ),
    LeatError,
  );
  await settle();
  await cluster.world.advance(FIRST_ANSWER_TIMEOUT_MS + 100);
  return await rejected;
}

Deno.test("a client whose job stays above a quota gets the dispatcher's refusal, not the report of an absent dispatcher", async () => {
  await using cluster = await TestCluster.start({ quotas: { jobsMax: 1 } });
  await cluster.open(await cluster.dataset(), { jobName: "one" });
  const { code, message } = await errorOf(cluster);
  assertEquals(code, "resource_exhausted");
  assertStringIncludes(message, "jobsMax");
  const absent = await errorOf(cluster, { node: "absent", path: "/dispatcher" });
  assertEquals(absent.code, "unavailable");
  assertStringIncludes(absent.message, "No dispatcher answered");
});

Deno.test("firstAnswer asks for the dispatcher's address where another program of Leat answers", async () => {
  await using cluster = await TestCluster.start();
  const { node } = cluster.dispatcher;
  const { code, message } = await errorOf(cluster, { node, path: "/elsewhere" });
  assertEquals(code, "not_found");
  assertStringIncludes(message, `No dispatcher runs at ${node}`);
  assertStringIncludes(message, "a worker may listen there; give the dispatcher's address");
});

Deno.test("joinIteration gives up at a dispatcher that names another reader each time", async () => {
  await using cluster = await TestCluster.start();
  const joined = { jobId: 1, iterationId: 1, clientId: 1, clusterId: "c" };
  const join = async (readers: number) => {
    let asked = 0;
    const answer = await joinIteration(
      cluster.openRequest("1", { jobName: "j" }),
      ({ follows }) => {
        assertEquals(follows, asked === 0 ? undefined : asked);
        if (asked++ === readers) return Promise.resolve(joined);
        const details = { reason: TO_FOLLOW, follows: asked };
        return Promise.reject(new LeatError("failed_precondition", "not yet", { details }));
      },
    );
    assertEquals(answer, joined);
  };
  await join(16);
  const error = await assertRejects(() => join(17), LeatError, 'Cannot take job "j" over');
  assertEquals(error.code, "aborted");
  assertStringIncludes(error.message, "the last of them client 17");
});
