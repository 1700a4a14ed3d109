/** `RequestQueue`: whose turn is next, and who waits no more. */
import { RequestQueue, type Waiting } from "../../../../actors/worker/tasks/request_queue.ts";
import { assertEquals } from "../../../assert.ts";

function requestsOf(waiting: RequestQueue, clientId: number, count: number): Waiting[] {
  return Array.from({ length: count }, () => {
    const request: Waiting = { clientId, answer: Promise.withResolvers() };
    waiting.push(request);
    return request;
  });
}

function take(waiting: RequestQueue, count: number): (number | undefined)[] {
  return Array.from({ length: count }, () => waiting.shift()?.clientId);
}

Deno.test("RequestQueue: a client with many requests has no more turns than one with few", () => {
  const waiting = new RequestQueue();
  requestsOf(waiting, 1, 5);
  requestsOf(waiting, 2, 2);
  requestsOf(waiting, 3, 1);
  assertEquals(take(waiting, 9), [1, 2, 3, 1, 2, 1, 1, 1, undefined]);
});

Deno.test("RequestQueue: whoever was served asks again behind those that wait", () => {
  const waiting = new RequestQueue();
  requestsOf(waiting, 1, 2);
  requestsOf(waiting, 2, 2);
  assertEquals(take(waiting, 1), [1]);
  requestsOf(waiting, 1, 1);
  requestsOf(waiting, 3, 1);
  assertEquals(take(waiting, 5), [2, 1, 3, 2, 1]);
});

Deno.test("RequestQueue: a client's requests are served in order, and those that are over not at all", () => {
  const waiting = new RequestQueue();
  const [first, second, third] = requestsOf(waiting, 1, 3);
  const left = requestsOf(waiting, 2, 2);
  assertEquals(waiting.delete(second!), true);
  assertEquals(waiting.delete(second!), false);
  assertEquals(waiting.length, 4);
  assertEquals(waiting.leave(2).length, left.length);
  assertEquals(waiting.shift() === first && waiting.shift() === third, true);
  assertEquals([waiting.length, waiting.shift()], [0, undefined]);
});

Deno.test("RequestQueue: a client that gives up before its turn comes, and asks again, is not last for ever", () => {
  const waiting = new RequestQueue();
  requestsOf(waiting, 1, 2);
  requestsOf(waiting, 2, 2);
  for (let given = 0; given < 2; given++) {
    // Two wait for as long as it takes; the third gives up each time before an element is there.
    const [impatient] = requestsOf(waiting, 3, 1);
    waiting.delete(impatient!);
    assertEquals(take(waiting, 1), [1 + given]);
    requestsOf(waiting, 1 + given, 1);
  }
  requestsOf(waiting, 3, 1);
  assertEquals(take(waiting, 2), [3, 1]);
});

Deno.test("RequestQueue: a client that does not come back has no turn any more, and none waits that has given up", () => {
  const waiting = new RequestQueue();
  const [gone] = requestsOf(waiting, 1, 1);
  waiting.delete(gone!);
  assertEquals([waiting.length, waiting.shift()], [0, undefined]);
  requestsOf(waiting, 2, 40);
  assertEquals(new Set(take(waiting, 20)), new Set([2]));
  requestsOf(waiting, 1, 1);
  assertEquals(take(waiting, 1), [2], "it is behind those that wait");
  assertEquals(take(waiting, 1), [1]);
});
