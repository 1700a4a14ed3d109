/** `deno task scale`: what it says of wrong options, and what it makes of small clusters. */
import { runSweep } from "../../examples/scale/paper_sweep.ts";
import { renderScaleReport } from "../../examples/scale/report.ts";
import { measureSize } from "../../examples/scale/size.ts";
import { assert, assertAlmostEquals, assertMatch } from "../assert.ts";

const PROGRAM = new URL("../../examples/scale.ts", import.meta.url);

async function run(...args: string[]): Promise<{ code: number; said: string }> {
  const command = new Deno.Command("deno", {
    args: ["run", "-P", "--no-check", PROGRAM.pathname, ...args],
    cwd: new URL("../..", import.meta.url),
    env: { NO_COLOR: "1" },
  });
  const { code, stdout, stderr } = await command.output();
  const text = new TextDecoder();
  return { code, said: text.decode(stdout) + text.decode(stderr) };
}

Deno.test("scale answers --help, and names what is wrong with an option", async () => {
  const help = await run("--help");
  assert(help.code === 0, help.said);
  for (const option of ["--workers", "--clients", "--sweep", "--out", "--quick"]) {
    assert(help.said.includes(option), option);
  }
  const cases: [string[], RegExp][] = [
    [["--workers=-3"], /--workers is '-3', but has to be whole numbers from 1 to/],
    [["--clients", "0"], /clients/],
    [["--quick", "--out", "/nowhere/scale.html"], /\/nowhere\/scale\.html.*--out/s],
  ];
  for (const [args, message] of cases) {
    const { code, said } = await run(...args);
    assert(code !== 0, `${args} was taken`);
    assertMatch(said, message);
  }
});

Deno.test("the sweep comes near the paper's text with 8 workers", async () => {
  const [few] = await runSweep([8], () => {});
  assertAlmostEquals(few!.speedup.value, few!.paperSpeedup!.value, 0.06);
  assertAlmostEquals(few!.costSaving.value, few!.paperCostSaving!.value, 0.06);
  assert(few!.costSaving.value < few!.speedup.value, "workers cost something");
});

Deno.test("a size is measured through a crash of its dispatcher, and shown in tables and plots", async () => {
  const phases = new Set<string>();
  const size = await measureSize(8, 2, (phase) => phases.add(phase));
  assert(phases.has("recovering"));
  // One second without a dispatcher, and at most a batch's time until the next split is asked for.
  assert(size.recovery.value > 1_000 && size.recovery.value < 15_000, `${size.recovery.value} ms`);
  assert(size.batches.value > 6 && size.batches.value < 10, `${size.batches.value} batches/s`);
  assert(size.statePerWorker.value > 100, "the dispatcher remembers its workers");
  const html = renderScaleReport({
    startedAt: "2026-01-01T00:00:00Z",
    durationSeconds: 1,
    commandLine: "deno task scale",
    host: "a host",
    sizes: [size, { ...size, workers: 16 }],
    sweep: [],
  });
  assert(html.includes("<svg") && html.includes("Dispatcher load"));
  assertMatch(html, /modelled/);
  assertMatch(html, /measured/);
});
