/** `LongPollWait`: how long requests wait that others could have. Times are handed in. */
import { LongPollWait } from "../../../../actors/client/readers/long_poll_wait.ts";
import { assert, assertEquals } from "../../../assert.ts";

const REQUESTS = 8;

/** How long a request may wait where an element comes each so many ms. */
function waitMsWhere(everyMs: number): number {
  const patience = new LongPollWait();
  let nowMs = 0;
  patience.begins(nowMs);
  for (let element = 0; element < 200; element++) patience.came(nowMs += everyMs);
  return patience.waitMs(nowMs, REQUESTS);
}

Deno.test("patience: a few requests are made for each element, however fast they come", () => {
  for (const everyMs of [20, 100, 1_000]) {
    const requestsPerElement = REQUESTS * everyMs / waitMsWhere(everyMs);
    assert(requestsPerElement > 1 && requestsPerElement < 3, `${everyMs}: ${requestsPerElement}`);
  }
});

Deno.test("patience has bounds", () => {
  assertEquals(waitMsWhere(0.01), 20);
  assertEquals(waitMsWhere(60_000), 5_000);
});

Deno.test("patience grows while nothing comes, also before the first element", () => {
  const patience = new LongPollWait();
  patience.begins(1_000);
  assertEquals(patience.waitMs(1_000, REQUESTS), 20);
  assertEquals(patience.waitMs(1_500, REQUESTS), 2_000);
  assertEquals(patience.waitMs(100_000, REQUESTS), 5_000);
});

Deno.test("patience: a time in which nothing was asked for is none of waiting", () => {
  const patience = new LongPollWait();
  patience.begins(0);
  for (let nowMs = 0; nowMs <= 1_000; nowMs += 5) patience.came(nowMs);
  patience.begins(3_600_000);
  assertEquals(patience.waitMs(3_600_000, REQUESTS), 20);
  patience.came(3_600_005);
  assertEquals(patience.waitMs(3_600_005, REQUESTS), 20);
});
