/** How many requests are open at one task, with a network and task of known speed. */
import {
  REQUESTS_MAX,
  REQUESTS_START,
  RequestTuner,
} from "../../../../actors/client/readers/request_tuner.ts";
import { assert, assertEquals } from "../../../assert.ts";

interface Way {
  /** The round trip without queueing. */
  readonly travelMs: number;
  /** The time per element of the slower of task and network. */
  readonly elementMs: number;
  /** Whether the task is the slower one. */
  readonly isHeld?: boolean;
  readonly loopWaits?: boolean;
  /** Of an element. */
  readonly bytes?: number;
}

/** This many answers, with as many requests open as wanted. */
function read(tuner: RequestTuner, count: number, way: Way, fromMs = 0): number {
  const { travelMs, elementMs, isHeld = false, loopWaits = true, bytes = 1_000 } = way;
  let freeMs = fromMs;
  const asked = Array.from({ length: tuner.wanted }, () => fromMs);
  for (let answer = 0; answer < count; answer++) {
    const askedMs = asked.shift()!;
    const startMs = Math.max(freeMs, askedMs + travelMs / 2);
    freeMs = startMs + elementMs;
    const nowMs = Math.max(freeMs + travelMs / 2, askedMs + travelMs);
    const heldMs = isHeld ? freeMs - (askedMs + travelMs / 2) : 0;
    tuner.noteArrival(nowMs, nowMs - askedMs, heldMs, loopWaits, bytes);
    while (asked.length < tuner.wanted) asked.push(nowMs);
  }
  return freeMs;
}

Deno.test("RequestTuner opens as many requests as a long round trip needs, and no more", () => {
  const tuner = new RequestTuner();
  assertEquals(tuner.wanted, REQUESTS_START);
  // 10 elements come per round trip.
  read(tuner, 1_000, { travelMs: 100, elementMs: 10 });
  assert(tuner.wanted >= 10 && tuner.wanted <= 24, `${tuner.wanted}`);
});

Deno.test("RequestTuner never exceeds its bound", () => {
  const tuner = new RequestTuner();
  read(tuner, 5_000, { travelMs: 1_000, elementMs: 0.1 });
  assertEquals(tuner.wanted, REQUESTS_MAX);
});

Deno.test("RequestTuner adds no requests that would only queue", () => {
  const short = new RequestTuner();
  read(short, 1_000, { travelMs: 0.2, elementMs: 5 });
  assert(short.wanted <= 3, "the way is short, and full");
  const slow = new RequestTuner();
  read(slow, 1_000, { travelMs: 20, elementMs: 100, isHeld: true });
  assertEquals(slow.wanted, REQUESTS_START, "the task is slow");
  const rested = new RequestTuner();
  read(rested, 1_000, { travelMs: 100, elementMs: 10, loopWaits: false });
  assertEquals(rested.wanted, REQUESTS_START, "the training loop is");
});

Deno.test("RequestTuner opens several requests for small elements that take less than a wake-up", () => {
  const wantedFor = (elementMs: number, bytes: number) => {
    const tuner = new RequestTuner();
    read(tuner, 1_000, { travelMs: 0.05, elementMs, bytes });
    return tuner.wanted;
  };
  const small = wantedFor(0.04, 1_000);
  assert(small >= 32, `${small}`);
  const middling = wantedFor(0.04, 50_000);
  assert(middling >= 16 && middling <= 24, `${middling}`);
  const large = wantedFor(0.04, 10_000_000);
  assert(large <= 6, `${large}`);
  const slow = wantedFor(5, 1_000);
  assert(slow <= 3, `${slow}`);
});

Deno.test("RequestTuner removes requests that no longer help", () => {
  const tuner = new RequestTuner();
  const nowMs = read(tuner, 1_000, { travelMs: 100, elementMs: 5 });
  assert(tuner.wanted > 10);
  read(tuner, 3_000, { travelMs: 100, elementMs: 5, loopWaits: false }, nowMs);
  assertEquals(tuner.wanted, REQUESTS_START);
});

Deno.test("RequestTuner keeps measuring when a coarse clock does not advance over many answers", () => {
  const tuner = new RequestTuner();
  for (let answer = 0; answer < 1_000; answer++) {
    const nowMs = 16 * Math.floor(answer / 100);
    tuner.noteArrival(nowMs, 0, 0, true, 1_000);
    assert(tuner.wanted >= REQUESTS_START, `${tuner.wanted} after ${answer} answers`);
  }
});
