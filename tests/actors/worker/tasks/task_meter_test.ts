/** What a task counts, with a manual clock. */

import { TaskMeter } from "../../../../actors/worker/tasks/task_meter.ts";
import { Payload } from "../../../../transport/payload.ts";
import { assertEquals, assertRejects } from "../../../assert.ts";
import { HeldRunner } from "../../lib/held_runner.ts";

Deno.test("TaskMeter.busyMs counts overlapping work once", async () => {
  let nowMs = 100;
  const meter = new TaskMeter(() => nowMs);
  const held = new HeldRunner();
  const runner = meter.watch(held);
  nowMs = 200;
  const [first, second] = [runner.next(), runner.next()];
  nowMs = 230;
  assertEquals(meter.busyMs, 30, "what is under way counts");
  held.asked[0]!.resolve({ kind: "end" });
  await first;
  nowMs = 250;
  held.asked[1]!.resolve({ kind: "end" });
  await second;
  nowMs = 900;
  assertEquals(meter.busyMs, 50, "rest does not count");
  const failing = runner.next();
  nowMs = 910;
  held.asked[2]!.reject(new Error("died"));
  await assertRejects(() => failing, Error);
  nowMs = 1_000;
  assertEquals(meter.busyMs, 60);
});

Deno.test("TaskMeter counts over all runners, without work of disposed ones", async () => {
  let nowMs = 0;
  const meter = new TaskMeter(() => nowMs);
  const [one, other] = [new HeldRunner(), new HeldRunner()];
  const first = meter.watch(one);
  const late = first.next();
  one.bytesRead = 10;
  nowMs = 5;
  first.dispose();
  first.dispose();
  assertEquals(one.disposed, 1);
  nowMs = 50;
  assertEquals([meter.busyMs, meter.figures.bytesRead, meter.figures.runnerRestarts], [5, 10, 0]);
  meter.watch(other).next();
  other.bytesRead = 7;
  nowMs = 60;
  one.asked[0]!.resolve({ kind: "end" });
  await late;
  assertEquals([meter.busyMs, meter.figures.bytesRead, meter.figures.runnerRestarts], [15, 17, 1]);
});

Deno.test("TaskMeter counts only elements that clients get", () => {
  const meter = new TaskMeter(() => 0);
  const element = new Payload(new Uint8Array(30));
  const place = { sequence: 0, split: 0, index: 0 };
  const error = { code: "internal", message: "no" } as const;
  meter.handOut({ kind: "element", element });
  meter.handOut({ kind: "remainder", element, place });
  meter.handOut({ kind: "error", error });
  meter.handOut({ kind: "split_end", place });
  assertEquals([meter.figures.served, meter.figures.servedBytes], [3, 60]);
});
