/** `deno task scale`: its errors about options, and its measurements of small clusters. */
import { LeatError } from "../../core/error.ts";
import { growthOf, SIZE_FIGURES, sizeTable } from "../../cli/scale/growth.ts";
import type { ScaleResults, SizeRun } from "../../cli/scale/measurements.ts";
import { sweepSize } from "../../cli/scale/paper_sweep.ts";
import { renderScaleReport } from "../../cli/scale/report.ts";
import { afterWarmUp, measureAll, requireAll } from "../../cli/scale/series.ts";
import { measureSize } from "../../cli/scale/size.ts";
import { measured } from "../../cli/lib/quantity.ts";
import { assert, assertAlmostEquals, assertEquals, assertMatch, assertThrows } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { withFiles } from "../lib/temp_folder.ts";

const PROGRAM = `${import.meta.dirname}/../../cli/scale.ts`;

async function run(...args: string[]): Promise<{ code: number; said: string }> {
  const command = new Deno.Command("deno", {
    args: ["run", "-P", "--no-check", PROGRAM, ...args],
    cwd: new URL("../..", import.meta.url),
    env: { NO_COLOR: "1" },
  });
  const { code, stdout, stderr } = await command.output();
  const text = new TextDecoder();
  return { code, said: text.decode(stdout) + text.decode(stderr) };
}

Deno.test("scale answers --help, and names the fault of an option", async () => {
  const help = await run("--help");
  assert(help.code === 0, help.said);
  for (const option of ["--workers", "--clients", "--sweep", "--out", "--quick"]) {
    assert(help.said.includes(option), option);
  }
  const cases: [string[], RegExp][] = [
    [["--workers=-3"], /--workers is '-3', but has to be whole numbers with commas between/],
    [["--clients", "0"], /clients/],
    [["--quick", "--out", "/nowhere/scale.html"], /\/nowhere\/scale\.html.*--out/s],
  ];
  for (const [args, message] of cases) {
    const { code, said } = await run(...args);
    assert(code !== 0, `${args} was taken`);
    assertMatch(said, message);
  }
});

Deno.test("scale says how long it took, also if the clock of the system is set meanwhile", async () => {
  await withFiles({}, async (folder) => {
    const set = "const now = Date.now; Date.now = () => now() - 1e12;";
    await using child = startChild("cli/scale.ts", {
      flags: ["-P", "--no-check", "--preload", `data:text/javascript,${encodeURIComponent(set)}`],
      args: ["--workers", "4", "--sweep", "none", "--out", `${folder}/scale.html`],
    });
    assertEquals((await child.status).code, 0, child.stderr.text);
    assertMatch(await Deno.readTextFile(`${folder}/scale.html`), /Took<\/dt><dd>\d+ s</);
  });
});

Deno.test("the sweep comes near the paper's text with 8 workers", async () => {
  const few = await sweepSize(8);
  assertAlmostEquals(few.speedup.value, few.paperSpeedup!.value, 0.06);
  assertAlmostEquals(few.costSaving.value, few.paperCostSaving!.value, 0.06);
  assert(few.costSaving.value < few.speedup.value, "workers cost something");
});

Deno.test("a size is measured through a crash of its dispatcher, and shown in tables and plots", async () => {
  const phases = new Set<string>();
  const size = await measureSize(8, 2, (phase) => phases.add(phase));
  assert(phases.has("recovering"));
  // One second without a dispatcher, and at most a batch's time until the next split is requested.
  assert(size.recovery.value > 1_000 && size.recovery.value < 15_000, `${size.recovery.value} ms`);
  assert(size.batches.value > 6 && size.batches.value < 10, `${size.batches.value} batches/s`);
  assert(size.statePerWorker.value > 100, "the dispatcher remembers its workers");
  const html = page({ sizes: [size, { ...size, workers: 16 }], sweep: [], gaps: [] });
  assert(html.includes("<svg") && html.includes("Dispatcher load"));
  assertMatch(html, /modelled/);
  assertMatch(html, /measured/);
});

Deno.test("measureAll continues after a size that fails, and names it and the untried ones", async () => {
  const written: ScaleResults[] = [];
  const results = await measureAll({ sizes: [8, 16, 32], sweep: [64] }, {
    size: (workers) =>
      workers === 16
        ? Promise.reject(new LeatError("resource_exhausted", "no more room"))
        : Promise.resolve(sizeOf(workers)),
    sweep: () => Promise.reject(new TypeError("a bug")),
  }, (soFar) => Promise.resolve(void written.push(structuredClone(soFar))));
  assertEquals(results.sizes.map(({ workers }) => workers), [8, 32]);
  assertEquals(written.map(({ sizes }) => sizes.length), [1, 1, 2, 2]);
  assertEquals(written[0]!.gaps.map(({ workers }) => workers), [16, 32, 64]);
  const html = page(written[1]!);
  for (
    const words of [/8 workers/, /16 workers: no more room/, /32 workers: not measured/, /<svg/]
  ) {
    assertMatch(html, words);
  }
  const error = assertThrows(() => requireAll(results), LeatError);
  assertMatch(error.message, /2 of 4 sizes .*16 workers: no more room; .*64 workers: a bug/);
  requireAll({ ...results, gaps: [] });
});

Deno.test("afterWarmUp: a failed warm-up costs one size, and a successful one is not repeated", async () => {
  let warmUps = 0;
  const warmUp = () =>
    ++warmUps === 1 ? Promise.reject(new LeatError("internal", "too cold")) : Promise.resolve();
  const size = afterWarmUp(warmUp, (workers) => Promise.resolve(sizeOf(workers)));
  const never = () => Promise.reject(new Error("no sweep"));
  const { sizes, gaps } = await measureAll(
    { sizes: [8, 16, 32], sweep: [] },
    { size, sweep: never },
    () => Promise.resolve(),
  );
  assertEquals(gaps.map(({ workers, reason }) => [workers, reason]), [[8, "too cold"]]);
  assertEquals(sizes.map(({ workers }) => workers), [16, 32]);
  assertEquals(warmUps, 2);
});

Deno.test("the table of sizes names the figures that grow faster than the workers", () => {
  const sizes = [sizeOf(8), {
    ...sizeOf(64),
    dispatcherMessages: measured(8 * 100, "messages/s"),
    replay: measured(8 * 1.6 * 100, "ms"),
    recovery: measured(160, "ms"),
    eventsPerCpuMs: measured(900, "1"),
  }];
  const worse = Object.entries(SIZE_FIGURES).filter(([, it]) => growthOf(it, sizes)?.isWorse);
  assertEquals(worse.map(([key]) => key), ["recovery", "replay"]);
  assertAlmostEquals(growthOf(SIZE_FIGURES.load, sizes)!.againstLinear!.value, 1, 1e-9);
  assertAlmostEquals(growthOf(SIZE_FIGURES.replay, sizes)!.againstLinear!.value, 1.6, 1e-9);
  const table = sizeTable(sizes);
  assert(table.rows.every((row) => row.length === table.columns.length), "a cell for each column");
  assertEquals(table.columns.map(({ heading }) => heading).slice(1, 4), [
    "8 workers",
    "64 workers",
    "for ×8 workers",
  ]);
  assertEquals(sizeTable(sizes.slice(0, 1)).columns.length, 2);
  assertMatch(page({ sizes, sweep: [], gaps: [] }), /worse than linear/);
});

Deno.test("every measured size is labelled on the x axis, and labels do not overlap", () => {
  const labels = [8, 64, 512, 640, 5_000];
  const html = page({ sizes: labels.map(sizeOf), sweep: [], gaps: [] });
  const axis = html.match(/aria-label="x-axis tick label".*?<\/g>/s)![0];
  const texts = [...axis.matchAll(/<text[^>]*>(.*?)<\/text>/gs)].map(([, text]) => text!);
  assertEquals(texts.map((text) => text.replace(/<[^>]*>|,/g, "").trim()), labels.map(String));
  const isLower = texts.map((text) => text.includes("<tspan"));
  assertEquals(isLower, [false, false, false, true, false], "640 has no room beside 512");
});

function page(results: ScaleResults): string {
  return renderScaleReport({
    startedAt: "2026-01-01T00:00:00Z",
    durationSeconds: 1,
    commandLine: "deno task scale",
    host: "a host",
    ...results,
  });
}

/** A size whose figures are all 100. */
function sizeOf(workers: number): SizeRun {
  const value = 100;
  return {
    workers,
    clients: 1,
    pools: 1,
    dispatcherMessages: measured(value, "messages/s"),
    workerHeartbeat: measured(value, "µs"),
    clientHeartbeat: measured(value, "µs"),
    split: measured(value, "µs"),
    firstBatch: measured(value, "ms"),
    allBatches: measured(value, "ms"),
    recovery: measured(value, "ms"),
    replay: measured(value, "ms"),
    heapPerNode: measured(value, "bytes"),
    statePerWorker: measured(value, "bytes"),
    batches: measured(value, "batches/s"),
    eventsPerCpuMs: measured(value, "1"),
    cpuSeconds: measured(value, "s"),
    memory: measured(value, "bytes"),
  };
}
