/**
 * What it brings to make errors quickly.
 *
 * @module
 */
import { assert } from "../assert.ts";
import { startChild } from "../lib/child.ts";

/** It is some ten times as long, and without the permission as long. */
const TIMES_MIN = 3;

async function timesAsLong(flags: string[]): Promise<number> {
  await using child = startChild("tests/sim/lib/error_cost.ts", { flags });
  await child.status;
  return Number(child.stdout.text);
}

Deno.test("makeErrorsQuick has errors take a fraction of the time, if it may look at the system", async () => {
  const quick = await timesAsLong(["--allow-sys"]);
  assert(quick > TIMES_MIN, `errors took ${quick} times as long before`);
  const denied = await timesAsLong([]);
  assert(denied > 0 && denied < TIMES_MIN, `errors took ${denied} times as long before`);
});
