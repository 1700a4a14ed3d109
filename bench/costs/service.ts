/**
 * Measures the CPU time that an element of the service costs its client on the worker's host, and the
 * time of a copy into a slot file and out of it. The rest of the client's time is waking and messages.
 *
 * ```sh
 * deno run -P=bench bench/costs/service.ts
 * ```
 */
import process from "node:process";
import { readableSlots, writableSlots } from "../../platform/process/slot_files.ts";
import { service } from "../peers/leat/service.ts";

const SIZES = { "1kb": 1_000, "150kb": 150_000, "1mb": 1_000_000, "10mb": 10_000_000 };
const WINDOW_MS = 1_500;
const WARM_UP_MS = 1_000;
const COPIES = 200;

/** Returns the elements per second, and the client's CPU time for one in µs. */
async function read(name: string): Promise<string> {
  await using running = await service[name]!({} as never);
  const untilMs = async (endMs: number) => {
    let count = 0;
    while (performance.now() < endMs) count += await running.step();
    return count;
  };
  await untilMs(performance.now() + WARM_UP_MS);
  const [startMs, before] = [performance.now(), process.cpuUsage()];
  const count = await untilMs(startMs + WINDOW_MS);
  const { user, system } = process.cpuUsage(before);
  const perSecond = 1_000 * count / (performance.now() - startMs);
  return `${perSecond.toFixed(0).padStart(6)} a second, ${
    ((user + system) / count).toFixed(0).padStart(5)
  } µs of its client's CPU each`;
}

/** Returns the median time of a copy into a slot, and of a copy out of it, in µs. */
async function copies(path: string, bytes: number): Promise<string> {
  const [out, into] = [writableSlots(path), readableSlots(path)];
  const source = new Uint8Array(bytes).fill(7);
  const target = new Uint8Array(bytes);
  const times: [number[], number[]] = [[], []];
  for (let copy = 0; copy < COPIES; copy++) {
    const startMs = performance.now();
    await out.write(copy % 2, [source]);
    const writtenMs = performance.now();
    await into.read(copy % 2, target);
    times[0].push(writtenMs - startMs);
    times[1].push(performance.now() - writtenMs);
  }
  out.close();
  into.close();
  const [write, readUs] = times.map((all) => {
    all.sort((a, b) => a - b);
    return (1_000 * all[COPIES / 2]!).toFixed(0);
  });
  return `a copy into a slot takes ${write} µs, out of it ${readUs} µs`;
}

const path = await Deno.makeTempFile();
for (const [name, bytes] of Object.entries(SIZES)) {
  console.log(`${name.padStart(5)}, TCP:  ${await read(`service-${name}`)}`);
  console.log(`${name.padStart(5)}, host: ${await read(`host-${name}`)}`);
  console.log(`${name.padStart(5)}: ${await copies(path, bytes)}`);
}
await Deno.remove(path);
