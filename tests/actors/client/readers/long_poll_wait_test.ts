/** `LongPollWait`: how long requests may wait, with given times. */
import { LongPollWait } from "../../../../actors/client/readers/long_poll_wait.ts";
import { assert, assertEquals } from "../../../assert.ts";

const REQUESTS = 8;

/** How long a request may wait when one element comes per interval, in ms. */
function waitMsWhere(everyMs: number): number {
  const patience = new LongPollWait();
  let nowMs = 0;
  patience.noteRequest(nowMs);
  for (let element = 0; element < 200; element++) patience.noteArrival(nowMs += everyMs);
  return patience.waitMs(nowMs, REQUESTS);
}

Deno.test("LongPollWait allows a few requests per element, at any speed", () => {
  for (const everyMs of [20, 100, 1_000]) {
    const requestsPerElement = REQUESTS * everyMs / waitMsWhere(everyMs);
    assert(requestsPerElement > 1 && requestsPerElement < 3, `${everyMs}: ${requestsPerElement}`);
  }
});

Deno.test("LongPollWait has bounds", () => {
  assertEquals(waitMsWhere(0.01), 20);
  assertEquals(waitMsWhere(60_000), 5_000);
});

Deno.test("LongPollWait grows while nothing comes, also before the first element", () => {
  const patience = new LongPollWait();
  patience.noteRequest(1_000);
  assertEquals(patience.waitMs(1_000, REQUESTS), 20);
  assertEquals(patience.waitMs(1_500, REQUESTS), 2_000);
  assertEquals(patience.waitMs(100_000, REQUESTS), 5_000);
});

Deno.test("LongPollWait does not count time without requests", () => {
  const patience = new LongPollWait();
  patience.noteRequest(0);
  for (let nowMs = 0; nowMs <= 1_000; nowMs += 5) patience.noteArrival(nowMs);
  patience.noteRequest(3_600_000);
  assertEquals(patience.waitMs(3_600_000, REQUESTS), 20);
  patience.noteArrival(3_600_005);
  assertEquals(patience.waitMs(3_600_005, REQUESTS), 20);
});
