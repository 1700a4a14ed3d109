/** The throughput of answers. */
import { BandwidthMeter } from "../../../../actors/client/readers/task_fetcher.ts";
import { assertAlmostEquals, assertEquals } from "../../../assert.ts";

Deno.test("BandwidthMeter subtracts the round trip of an empty message", () => {
  const meter = new BandwidthMeter();
  assertEquals(meter.bytesPerSecond, undefined);
  meter.roundTrip(40);
  // 1 MB in 100 ms, 50 ms after the request: 60 ms are spent on the bytes.
  meter.noteArrival(1_000, 1e6, 100);
  assertAlmostEquals(meter.bytesPerSecond!, 1e6 / 0.06, 1);
});

Deno.test("BandwidthMeter counts overlapping answers once", () => {
  const meter = new BandwidthMeter();
  meter.roundTrip(0);
  // Two concurrent requests share the network: 10 MB/s in all.
  for (let pair = 1; pair <= 50; pair++) {
    meter.noteArrival(200 * pair - 100, 1e6, 200);
    meter.noteArrival(200 * pair, 1e6, 200);
  }
  assertAlmostEquals(meter.bytesPerSecond!, 10e6, 1);
});

Deno.test("BandwidthMeter follows a network that becomes faster", () => {
  const meter = new BandwidthMeter();
  meter.roundTrip(10);
  for (let at = 0; at < 10_000; at += 100) meter.noteArrival(at, 1e5, 110);
  assertAlmostEquals(meter.bytesPerSecond!, 1e6, 2e4);
  for (let at = 10_000; at < 60_000; at += 100) meter.noteArrival(at, 1e6, 110);
  assertAlmostEquals(meter.bytesPerSecond!, 10e6, 1);
});
