/** Requests that wait for something to do: who is answered, when, and who is let go. */
import { WaitingRequests } from "../../../../actors/dispatcher/jobs/waiting_requests.ts";
import { LeatError } from "../../../../core/error.ts";
import { assertEquals, assertRejects, assertThrows } from "../../../assert.ts";
import { tableOf, TestCluster } from "../lib.ts";

const ITERATION = 1;
const MAX = 4;

/** A queue on a clock that is set by hand, and work of which there is as much as is said. */
function setup() {
  const at = { nowMs: 0, work: 0 };
  const requests = new WaitingRequests(MAX, () => at.nowMs);
  const wait = (name: string, deadlineMs = Infinity) => {
    const answer = () => {
      at.work--;
      return name;
    };
    return requests.wait(ITERATION, { deadlineMs, isAnswerable: () => at.work > 0, answer });
  };
  return { at, requests, wait };
}

Deno.test("WaitingRequests answers as many as there is work for, the oldest first", async () => {
  const { at, requests, wait } = setup();
  const order: string[] = [];
  const asked = ["a", "b", "c"].map((name) => wait(name).then((answer) => order.push(answer)));
  requests.settle(ITERATION);
  at.work = 2;
  requests.settle(ITERATION);
  await Promise.all(asked.slice(0, 2));
  assertEquals(order, ["a", "b"]);
  at.work = 1;
  requests.settle(ITERATION + 1);
  assertEquals(order.length, 2, "another iteration's news are none of theirs");
  requests.settle(ITERATION);
  await asked[2];
});

Deno.test("WaitingRequests refuses whoever has given up, whether anything happens or not, and takes others in their place", async () => {
  const { at, requests, wait } = setup();
  const late = [1, 1, 2, Infinity].map((deadlineMs, i) => wait(`${i}`, deadlineMs));
  assertEquals(assertThrows(() => wait("one too many"), LeatError).code, "resource_exhausted");
  at.nowMs = 1;
  requests.expire();
  for (const waiter of late.slice(0, 2)) {
    assertEquals((await assertRejects(() => waiter, LeatError)).code, "deadline_exceeded");
  }
  at.nowMs = 2;
  at.work = 1;
  requests.settle(ITERATION);
  assertEquals((await assertRejects(() => late[2]!, LeatError)).code, "deadline_exceeded");
  assertEquals(await late[3], "3", "the work is for one who waits");
});

Deno.test("WaitingRequests says what a decision throws, and goes on with the others", async () => {
  const { requests } = setup();
  const failing = requests.wait(ITERATION, {
    deadlineMs: Infinity,
    isAnswerable: () => true,
    answer: () => {
      // What it decided has consequences for the others.
      requests.settle(ITERATION);
      throw new LeatError("failed_precondition", "its task has ended");
    },
  });
  const other = requests.wait(ITERATION, {
    deadlineMs: Infinity,
    isAnswerable: () => true,
    answer: () => Promise.resolve("answered"),
  });
  requests.settle(ITERATION);
  assertEquals((await assertRejects(() => failing, LeatError)).code, "failed_precondition");
  assertEquals(await other, "answered");
});

Deno.test("WaitingRequests.rejectAll ends all", async () => {
  const { requests, wait } = setup();
  const asked = wait("a");
  requests.rejectAll(new LeatError("unavailable", "it stops"));
  assertEquals((await assertRejects(() => asked, LeatError)).code, "unavailable");
});

Deno.test("a dispatcher lets go of requests for splits whose askers have given up, although none comes", async () => {
  await using cluster = await TestCluster.start();
  const worker = cluster.worker("w", tableOf(1));
  await worker.heartbeat();
  await cluster.open(await cluster.dataset(), {
    processingMode: "DETERMINISTIC",
    ordered: { seed: "0123456789abcdef", shuffled: false },
  });
  const [taskId = 0] = await worker.heartbeat();
  const timeoutMs = 1_000;
  const request = { taskId, source: 0, repetition: 0, spare: true };
  for (let number = 1; number <= 50; number++) {
    cluster.system.ask(cluster.dispatcher, "getSplit", { ...request, number }, { timeoutMs })
      .catch(() => {});
  }
  await cluster.ask("hello", null);
  assertEquals(cluster.system.held.beingAnswered, 50);
  await cluster.world.advance(10_000);
  assertEquals(cluster.system.held.beingAnswered, 0);
});
