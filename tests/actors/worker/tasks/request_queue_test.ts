/** `RequestQueue`: which client is next, and which requests no longer wait. */
import { RequestQueue, type Waiting } from "../../../../actors/worker/tasks/request_queue.ts";
import { assertEquals } from "../../../assert.ts";

function requestsOf(waiting: RequestQueue, clientId: number, count: number): Waiting[] {
  return Array.from({ length: count }, () => {
    const request: Waiting = { reader: `${clientId}`, answer: Promise.withResolvers() };
    waiting.push(request);
    return request;
  });
}

function take(waiting: RequestQueue, count: number): (number | undefined)[] {
  return Array.from({ length: count }, () => {
    const next = waiting.shift();
    return next && Number(next.reader);
  });
}

Deno.test("RequestQueue gives a client with many requests no larger share", () => {
  const waiting = new RequestQueue();
  requestsOf(waiting, 1, 5);
  requestsOf(waiting, 2, 2);
  requestsOf(waiting, 3, 1);
  assertEquals(take(waiting, 9), [1, 2, 3, 1, 2, 1, 1, 1, undefined]);
});

Deno.test("RequestQueue puts a served client behind the waiting ones", () => {
  const waiting = new RequestQueue();
  requestsOf(waiting, 1, 2);
  requestsOf(waiting, 2, 2);
  assertEquals(take(waiting, 1), [1]);
  requestsOf(waiting, 1, 1);
  requestsOf(waiting, 3, 1);
  assertEquals(take(waiting, 5), [2, 1, 3, 2, 1]);
});

Deno.test("RequestQueue serves a client's requests in order, without deleted ones", () => {
  const waiting = new RequestQueue();
  const [first, second, third] = requestsOf(waiting, 1, 3);
  const left = requestsOf(waiting, 2, 2);
  assertEquals(waiting.delete(second!), true);
  assertEquals(waiting.delete(second!), false);
  assertEquals(waiting.length, 4);
  assertEquals(waiting.leave("2").length, left.length);
  assertEquals(waiting.shift() === first && waiting.shift() === third, true);
  assertEquals([waiting.length, waiting.shift()], [0, undefined]);
});

Deno.test("RequestQueue keeps the place of a client that gives up and asks again", () => {
  const waiting = new RequestQueue();
  requestsOf(waiting, 1, 2);
  requestsOf(waiting, 2, 2);
  for (let given = 0; given < 2; given++) {
    // Two wait without limit; the third gives up each time before an element is ready.
    const [impatient] = requestsOf(waiting, 3, 1);
    waiting.delete(impatient!);
    assertEquals(take(waiting, 1), [1 + given]);
    requestsOf(waiting, 1 + given, 1);
  }
  requestsOf(waiting, 3, 1);
  assertEquals(take(waiting, 2), [3, 1]);
});

Deno.test("RequestQueue drops the place of a client that does not come back", () => {
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
