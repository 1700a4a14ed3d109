/** How long something was blocked. */
import { BlockedMeter } from "../../../actors/client/blocked_meter.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("BlockedMeter counts blocked time, including the block in progress", () => {
  let nowMs = 0;
  const meter = new BlockedMeter(() => nowMs);
  const at = (ms: number, isBlocked: boolean) => {
    nowMs = ms;
    meter.note(isBlocked);
    return meter.ms;
  };
  assertEquals([at(10, false), at(20, true), at(25, true), at(50, false), at(70, false)], [
    0,
    0,
    5,
    30,
    30,
  ]);
  at(100, true);
  nowMs = 104;
  assertEquals(meter.ms, 34);
});
