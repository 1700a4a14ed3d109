/** Rates over a sliding window, by hand. */

import { perUnit, RateWindow } from "../../../../actors/dispatcher/scaling/rate_window.ts";
import { assertEquals } from "../../../assert.ts";

const WINDOW_MS = 10_000;

Deno.test("RateWindow.perSecond is the growth over the time between reports", () => {
  const window = new RateWindow(WINDOW_MS);
  assertEquals(window.perSecond("n"), 0, "nothing was reported");
  window.add(1_000, { n: 10 });
  assertEquals(window.perSecond("n"), 0, "one report is no rate");
  window.add(3_000, { n: 30 });
  assertEquals(window.perSecond("n"), 10);
  window.add(5_000, { n: 130 });
  assertEquals(window.perSecond("n"), 30);
});

Deno.test("RateWindow forgets what lies further back than the window", () => {
  const window = new RateWindow(WINDOW_MS);
  // 100 a second for a minute, then 7 a second for longer than the window.
  for (let s = 0; s <= 60; s++) window.add(1_000 * s, { n: 100 * s });
  for (let s = 1; s <= WINDOW_MS / 1_000; s++) window.add(60_000 + 1_000 * s, { n: 6_000 + 7 * s });
  assertEquals(window.spanMs, WINDOW_MS);
  assertEquals(window.perSecond("n"), 7);
});

Deno.test("RateWindow looks back to the report before, however old, and at that alone", () => {
  const window = new RateWindow(WINDOW_MS);
  window.add(0, { n: 0 });
  window.add(60_000, { n: 600 });
  window.add(90_000, { n: 630 });
  assertEquals(window.perSecond("n"), 1);
});

Deno.test("RateWindow.continued goes on with another sender's counts and clock, unless it is old", () => {
  const before = new RateWindow(WINDOW_MS);
  before.add(0, { n: 100 });
  before.add(4_000, { n: 140 });
  const window = before.continued(55_000, 50_000);
  assertEquals(window.perSecond("n"), 10);
  window.add(55_000, { n: 0 });
  assertEquals(window.perSecond("n"), 8);
  window.add(58_000, { n: 40 });
  assertEquals([window.perSecond("n"), before.perSecond("n")], [10, 10]);
  assertEquals(before.continued(70_000, 49_000).newest, undefined);
});

Deno.test("RateWindow drops a report that was overtaken", () => {
  const window = new RateWindow(WINDOW_MS);
  window.add(0, { n: 0 });
  window.add(2_000, { n: 20 });
  window.add(1_000, { n: 15 });
  window.add(2_000, { n: 999 });
  assertEquals(window.perSecond("n"), 10);
});

Deno.test("RateWindow drops a report of which nothing can be reckoned, and keeps the others", () => {
  const window = new RateWindow(WINDOW_MS);
  window.add(0, { n: 0 });
  for (const wrong of [NaN, Infinity, -Infinity, Number.MAX_VALUE]) {
    window.add(1_000, { n: wrong });
    window.add(wrong, { n: 10 });
  }
  window.add(2_000, { n: 20 });
  assertEquals([window.perSecond("n"), window.newest?.atMs], [10, 2_000]);
});

Deno.test("RateWindow is exact however often is reported", () => {
  const window = new RateWindow(WINDOW_MS);
  for (let ms = 0; ms <= 4 * WINDOW_MS; ms += 10) window.add(ms, { n: ms / 2 });
  assertEquals(window.perSecond("n"), 500);
  assertEquals(window.spanMs >= WINDOW_MS && window.spanMs < 1.1 * WINDOW_MS, true);
});

Deno.test("perUnit falls back on all time where nothing has grown of late", () => {
  const window = new RateWindow(WINDOW_MS);
  assertEquals(perUnit([window], "ms", "n"), null);
  window.add(0, { ms: 0, n: 0 });
  assertEquals(perUnit([window], "ms", "n"), null);
  window.add(1_000, { ms: 800, n: 4 });
  assertEquals(perUnit([window], "ms", "n"), 200);
  window.add(60_000, { ms: 900, n: 4 });
  assertEquals(perUnit([window], "ms", "n"), 225);
});
