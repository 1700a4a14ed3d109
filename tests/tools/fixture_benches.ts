/**
 * Two benches, to test how benches are interrupted: the first ends immediately, the second never.
 */

import type { Load } from "../../bench/bare/load.ts";
import type { Bench } from "../../bench/lib/bench.ts";
import { runBenches } from "../../bench/lib/run.ts";

function bench(name: string, window: Load["window"]): Bench {
  const open = (): Load => ({ window, [Symbol.asyncDispose]: () => Promise.resolve() });
  return { name, unit: "things/s", floor: 1, bare: open, leat: open };
}

await runBenches([
  bench("short", () => Promise.resolve(1)),
  bench("endless", () => new Promise(() => setInterval(() => {}, 1_000))),
], { json: Deno.args[0] });
