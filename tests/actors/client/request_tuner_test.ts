/** How many requests are open at one task. */
import {
  REQUESTS_MAX,
  REQUESTS_START,
  RequestTuner,
} from "../../../actors/client/request_tuner.ts";
import { assertEquals } from "../../assert.ts";

/** So many answers that look alike. */
function answers(
  tuner: RequestTuner,
  count: number,
  answerMs: number,
  heldMs: number,
  waits = true,
) {
  for (let answer = 0; answer < count; answer++) tuner.came(answerMs, heldMs, waits);
}

Deno.test("RequestTuner asks for more where elements are ready and the way is long, up to a bound", () => {
  const tuner = new RequestTuner();
  assertEquals(tuner.wanted, REQUESTS_START);
  answers(tuner, 8, 100, 1);
  assertEquals(tuner.wanted, 4);
  answers(tuner, 1_000, 100, 1);
  assertEquals(tuner.wanted, REQUESTS_MAX);
});

Deno.test("RequestTuner asks for no more where the training loop does not wait, or requests wait", () => {
  const tuner = new RequestTuner();
  answers(tuner, 100, 100, 1, false);
  assertEquals(tuner.wanted, REQUESTS_START);
  answers(tuner, 100, 100, 80);
  assertEquals(tuner.wanted, REQUESTS_START, "the task makes them no faster");
  answers(tuner, 100, 0.5, 0);
  assertEquals(tuner.wanted, REQUESTS_START, "the way is short");
});

Deno.test("RequestTuner takes back what brings nothing any more", () => {
  const tuner = new RequestTuner();
  answers(tuner, 40, 100, 1);
  answers(tuner, 10_000, 100, 99);
  assertEquals(tuner.wanted, REQUESTS_START);
});
