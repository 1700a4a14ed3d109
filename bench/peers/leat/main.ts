/**
 * Leat's side: `main.ts PIPELINE FILES` runs a pipeline in windows, with the protocol that
 * `bench/peers/side.ts` describes. `FILES` is JSON with the paths of the generated files.
 */
import { LineStream } from "../../../cli/lib/line_stream.ts";
import type { Tensor } from "../../../mod.ts";
import type { PeerFiles } from "../files.ts";
import type { Sample } from "../side.ts";
import { PIPELINES } from "./pipelines.ts";

/** This first share of a window does not count, because buffers were filled before it. */
const LEAD_IN = 0.2;

const [name = "", files = "{}"] = Deno.args;
const open = PIPELINES[name];
if (open === undefined) throw new Error(`Leat's side has no pipeline "${name}"`);
await using running = await open(JSON.parse(files) as PeerFiles);
for await (const line of Deno.stdin.readable.pipeThrough(new LineStream())) {
  if (line === "sample") {
    console.log(JSON.stringify(imageOf(await running.sample!() as Tensor)));
    continue;
  }
  const ms = Number(line);
  await run(LEAD_IN * ms);
  const { units, tookMs } = await run((1 - LEAD_IN) * ms);
  const { also } = running;
  console.log(JSON.stringify({ rate: 1_000 * units / tookMs, also }));
}

/** Returns an image, or the first of a batch. */
function imageOf({ shape, data }: Tensor): Sample {
  const size = shape.slice(-3);
  const [height, width, channels] = size as [number, number, number];
  return {
    shape: size,
    values: Array.from(data as Float32Array).slice(0, height * width * channels),
  };
}

async function run(ms: number): Promise<{ units: number; tookMs: number }> {
  const startedAtMs = performance.now();
  let units = 0;
  let tookMs = 0;
  do {
    units += await running.step();
    tookMs = performance.now() - startedAtMs;
  } while (tookMs < ms);
  return { units, tookMs };
}
