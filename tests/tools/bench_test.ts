/** How benches measure: what is counted, the order of the loads, the verdict, the table. */

import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { drive, type Load, measure, median } from "../../bench/bare/load.ts";
import { startChild } from "../lib/child.ts";
import { type Bench, resultTable, runRatio } from "../../bench/lib/bench.ts";

/** A load that records its calls and gives the rates in order. */
function scripted(name: string, rates: number[], log: string[]): Load {
  return {
    window() {
      log.push(name);
      return Promise.resolve(rates.shift() ?? NaN);
    },
    [Symbol.asyncDispose]() {
      log.push(`close ${name}`);
      return Promise.resolve();
    },
  };
}

function bench(bare: number[], leat: number[], log: string[] = []): Bench {
  return {
    name: "an example",
    unit: "things/s",
    floor: 0.5,
    bare: () => scripted("bare", bare, log),
    leat: () => scripted("leat", leat, log),
  };
}

Deno.test("drive counts every call of every lane", async () => {
  let calls = 0;
  let underWay = 0;
  let most = 0;
  const sum = await drive(8, async () => {
    calls++;
    most = Math.max(most, ++underWay);
    await Promise.resolve();
    underWay--;
    return 3;
  }, () => calls >= 1000);
  assertEquals(sum, calls * 3);
  assertEquals(most, 8);
});

Deno.test("median is the middle, or the mean of the middle two", () => {
  assertEquals(median([3, 1, 2]), 2);
  assertEquals(median([4, 1, 3, 2]), 2.5);
});

Deno.test("measure excludes the warm-up and closes the load", async () => {
  const log: string[] = [];
  const open = () => scripted("load", [1, 10, 30, 20], log);
  const figure = await measure("x", "things/s", open, { windows: 3 });
  assertEquals(figure, { name: "x", unit: "things/s", value: 20, windows: [10, 30, 20] });
  assertEquals(log, ["load", "load", "load", "load", "close load"]);
});

Deno.test("runRatio alternates the loads and takes the median of the rounds' ratios", async () => {
  const log: string[] = [];
  // The second round is disturbed for both: its ratio equals the others'.
  const result = await runRatio(bench([1, 100, 10, 200], [1, 80, 8, 100], log), { rounds: 3 });
  assertEquals(result.ratio, 0.8);
  assertEquals([result.bare, result.leat, result.passed], [100, 80, true]);
  const turns = Array<string[]>(4).fill(["bare", "leat"]).flat();
  assertEquals(log, [...turns, "close leat", "close bare"]);
});

Deno.test("runRatio fails a ratio below its floor, and the table says so", async () => {
  const result = await runRatio(bench([1, 100], [1, 49]), { rounds: 1 });
  assert(!result.passed);
  const [, , row = ""] = resultTable([result]).split("\n");
  assertStringIncludes(row, "0.49   0.50  below");
});

Deno.test("runRatio closes the bare load when the other cannot be opened", async () => {
  const log: string[] = [];
  const broken: Bench = { ...bench([], [], log), leat: () => Promise.reject(new Error("no")) };
  await assertRejects(() => runRatio(broken), Error, "no");
  assertEquals(log, ["close bare"]);
});

Deno.test("deno task bench reports before it begins that its results cannot be written", async () => {
  const file = `${await Deno.makeTempDir()}/missing/results.json`;
  const args = ["run", "-P=bench", "bench/main.ts", "--filter", "engine", "--json", file];
  const { code, stdout, stderr } = await new Deno.Command("deno", { args }).output();
  const said = new TextDecoder().decode(stderr);
  assertEquals([code, stdout.length], [2, 0], said);
  assertStringIncludes(said, `'${file}'`);
  assertStringIncludes(said, "Name another file with --json");
});

Deno.test("an interrupted runBenches shows the finished benches and their number", async () => {
  const folder = await Deno.makeTempDir();
  const file = `${folder}/results.json`;
  await using child = startChild("tests/tools/fixture_benches.ts", {
    args: [file],
    flags: ["-P=bench"],
  });
  assert(await child.stderr.match(/^endless …/) !== undefined, child.stderr.text);
  child.kill("SIGINT");
  assertEquals((await child.status).code, 130);
  assertStringIncludes(child.stderr.text, "Interrupted after 1 of 2 benches");
  assertStringIncludes(child.stdout.text, "short");
  assertEquals(JSON.parse(await Deno.readTextFile(file)).length, 1);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("README.md names its benches as deno task bench --filter takes them", async () => {
  const readme = await Deno.readTextFile(new URL("../../README.md", import.meta.url));
  const [, table = ""] = /^\| bench .*\n\| -.*\n((?:\|.*\n)+)/m.exec(readme) ?? [];
  const named = [...table.matchAll(/^\| (.*) \([^()]*\) *\|/gm)].map(([, name]) => name!);
  assert(named.length > 5, readme);
  await using child = startChild("bench/main.ts", { args: ["--list"], flags: ["-P=bench"] });
  assertEquals((await child.status).code, 0, child.stderr.text);
  const benches = child.stdout.text.split("\n").map((line) => line.replace(/ \([^()]*\)$/, ""));
  assertEquals(named.filter((name) => !benches.includes(name)), []);
});
