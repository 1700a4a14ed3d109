/** The reference of metrics follows from their table. */

import { metricsPage } from "../../tools/metrics.ts";
import { assertEquals } from "../assert.ts";

Deno.test("docs/reference/metrics.md is what deno task metrics writes", async () => {
  const page = new URL("../../docs/reference/metrics.md", import.meta.url);
  assertEquals(await Deno.readTextFile(page), metricsPage(), "run deno task metrics");
});
