/** How cli/plan.ts shows its stages and limits their time. */
import { StatusLine } from "../../../cli/lib/status_line.ts";
import { counted } from "../../../cli/lib/counted.ts";
import { ProgressTimeout } from "../../../cli/plan/progress_timeout.ts";
import { Stages } from "../../../cli/plan/stages.ts";
import type { LeatError } from "../../../mod.ts";
import { assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { until } from "../../lib/until.ts";

Deno.test("ProgressTimeout limits loading, then each batch, and reports after how many none came", async () => {
  const over = Promise.withResolvers<LeatError>();
  using timeout = new ProgressTimeout("m.ts", { loadingMs: 600_000, batchMs: 1 }, over.resolve);
  timeout.received(4);
  timeout.loaded();
  assertStringIncludes((await over.promise).message, "within 0.001 s after the first 4. Check");
});

Deno.test("Stages shows the duration of a stage, repeatedly, and in a StatusLine outside a terminal", async () => {
  const shown: string[] = [];
  {
    using stages = new Stages({ show: (line) => shown.push(line) });
    stages.begin("simulating 1 worker");
    assertMatch(shown[0]!, /^simulating 1 worker: \d+\.\d s$/);
    let batches = 1;
    stages.begin(() => counted(batches, "batch", "batches"));
    batches = 2;
    await until(() => shown.some((line) => /^2 batches: \d+\.\d s$/.test(line)));
  }
  if (Deno.stderr.isTerminal()) return;
  const written: unknown[] = [];
  const { error } = console;
  console.error = (line) => written.push(line);
  try {
    new StatusLine().show("never");
    const often = new StatusLine({ plainEveryMs: 0 });
    for (const line of ["one", "two"]) often.show(line);
    new StatusLine({ plainEveryMs: 3_600_000 }).show("within the hour");
  } finally {
    console.error = error;
  }
  assertEquals(written, ["one", "two"]);
});
