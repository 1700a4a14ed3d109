/** `deno task soak`: what counts as growth, and a short run of real processes. */

import { findingOf, renderSoakReport, type SoakReport } from "../../cli/soak/report.ts";
import { MEASURES, type Sample } from "../../cli/soak/samples.ts";
import { MARGINS, SAMPLES_OF_RUN_MIN, trendsOf } from "../../cli/soak/trend.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { soon } from "../cluster/lib.ts";
import { startChild } from "../lib/child.ts";

const SECONDS = 100;
const FLAGS = ["-P=soak", "--v8-flags=--expose-gc"];

/** One sample a second with the value `at` that second. */
function samples(at: (second: number) => number, from = 0, to = SECONDS): Sample[] {
  return Array.from({ length: to - from }, (_, i) => {
    const value = at(from + i);
    return { seconds: from + i, rss: value, heap: value, threads: value, files: value };
  });
}

function verdicts(at: (second: number) => number): Record<string, boolean> {
  const trends = trendsOf(new Map([["worker-1", samples(at)]]), SECONDS);
  return Object.fromEntries(trends.map(({ measure, grows }) => [measure, grows]));
}

Deno.test("trendsOf: constant levels, fluctuations and the warm-up are not growth", () => {
  const flat = Object.fromEntries(MEASURES.map((measure) => [measure, false]));
  assertEquals(verdicts(() => 100), flat);
  assertEquals(verdicts((second) => second % 2 === 0 ? 100 : 400), flat);
  assertEquals(verdicts((second) => second < 20 ? 10 : 300), flat);
  assertEquals(verdicts((second) => 400 - second), flat);
});

Deno.test("trendsOf: growth beyond the margin is named in each measure, and growth within is not", () => {
  const growing = Object.fromEntries(MEASURES.map((measure) => [measure, true]));
  assertEquals(verdicts((second) => 100 + 10 * second), growing);
  for (const measure of MEASURES) {
    const { more, percent } = MARGINS[measure];
    const base = 10;
    const by = Math.max(more, base * percent / 100);
    const step = (rise: number) => verdicts((second) => second < 60 ? base : base + rise)[measure];
    assertEquals(step(by * 0.99), false, measure);
    assertEquals(step(by * 1.01), true, measure);
  }
});

Deno.test("trendsOf names a slow leak: a rise all the way, but not one that levels off", () => {
  for (const measure of MEASURES) {
    const { more, percent } = MARGINS[measure];
    const base = 10;
    const rise = Math.max(more, base * percent / 100);
    const grows = (at: (share: number) => number) =>
      verdicts((second) => base + rise * at(second / SECONDS))[measure];
    assertEquals(grows((share) => share), true, measure);
    // Higher in nine seconds of ten, as while a job runs.
    assertEquals(grows((share) => share + (share * SECONDS % 10 === 0 ? 0 : 5)), true, measure);
    assertEquals(grows((share) => share / 3), false, `${measure}: too little`);
    assertEquals(grows((share) => 1 - Math.exp(-4 * share)), false, `${measure}: it fills up`);
    assertEquals(
      grows((share) => 1 - Math.exp(-1.7 * share)),
      false,
      `${measure}: it fills slowly`,
    );
    assertEquals(grows((share) => share < 0.6 ? 0 : 0.6), false, `${measure}: a step`);
  }
});

Deno.test("trendsOf gives no verdict on a short-lived process, nor on unknown measures", () => {
  const series = new Map([
    ["worker-1 (1)", samples((second) => 10 * second, 0, 50)],
    ["worker-1 (2)", samples((second) => 10 * second, 50)],
    ["dispatcher (3)", samples(() => 1).map(({ seconds, rss = 0 }) => ({ seconds, rss }))],
  ]);
  const trends = trendsOf(series, SECONDS);
  assertEquals(trends.map(({ process, measure }) => [process, measure]), [[
    "dispatcher (3)",
    "rss",
  ]]);
});

Deno.test("Samples gives the memory of a process to no later one of its name", async () => {
  // It runs `cat` and `ls`, which tests may not.
  await using child = startChild("tests/cli/fixture_samples.ts", { flags: FLAGS });
  assertEquals((await child.status).code, 0, child.stderr.text);
  const taken: [string, Sample[]][] = JSON.parse(child.stdout.text);
  const found = taken.filter(([name]) => name.startsWith("worker-1"))
    .map(([, [sample]]) => [sample!.rss, sample!.heap]);
  assertEquals(found, [[1, 2], [undefined, undefined]]);
});

Deno.test("renderSoakReport draws each known measure, and names what grew", () => {
  const series = { "worker-1 (1)": samples((second) => 10 * second) };
  const report: SoakReport = {
    ...{ startedAt: "2030-01-02T03:04:05Z", commandLine: "deno task soak <x>", seconds: SECONDS },
    sampleMs: 1_000,
    ...{ faults: 0, runs: { DYNAMIC: 3 }, violations: [], series },
    trends: trendsOf(new Map(Object.entries(series)), SECONDS),
  };
  const page = renderSoakReport(report);
  for (const title of ["Resident memory", "V8&#39;s heap", "Threads", "File handles"]) {
    assert(page.includes(title) || page.includes(title.replace("&#39;", "'")), title);
  }
  assertEquals(page.match(/<svg [^>]*role="img"/g)?.length, MEASURES.length);
  assertStringIncludes(page, "3 jobs, and what grew: rss of worker-1 (1), heap of worker-1 (1)");
  assertStringIncludes(page, "deno task soak &lt;x&gt;");
});

Deno.test("renderSoakReport has a line for each compared process, and one for all short-lived ones of a name", () => {
  const incarnations = Array.from(
    { length: 20 },
    (_, i) => [`worker-2 (${i})`, samples(() => 1, 5 * i, 5 * i + 5)] as const,
  );
  const series = Object.fromEntries([["worker-1 (1)", samples(() => 1)], ...incarnations]);
  const page = renderSoakReport({
    ...{ startedAt: "2030-01-02T03:04:05Z", commandLine: "", seconds: SECONDS },
    sampleMs: 1_000,
    ...{ faults: 19, runs: { DYNAMIC: 3 }, violations: [], series },
    trends: trendsOf(new Map(Object.entries(series)), SECONDS),
  });
  const [chart = ""] = /<figure.*?<\/figure>/s.exec(page) ?? [];
  assertStringIncludes(chart, "worker-1 (1)");
  assertStringIncludes(chart, "worker-2, 20 incarnations");
  assert(!chart.includes("worker-2 ("), "a line for each incarnation");
  const ticks = chart.match(/<text/g)?.length ?? 0;
  assert(ticks < SECONDS / 2, `${ticks} words in a chart, as if each second had one`);
});

Deno.test("a soak that was too short says how long it must be, and shows no table without rows", () => {
  const series = { "worker-1 (1)": samples(() => 1, 0, SAMPLES_OF_RUN_MIN - 1) };
  const seconds = SAMPLES_OF_RUN_MIN - 1;
  const report: SoakReport = {
    ...{ startedAt: "2030-01-02T03:04:05Z", commandLine: "", seconds, sampleMs: 1_000 },
    ...{ faults: 0, runs: { DYNAMIC: 3 }, violations: [], series },
    trends: trendsOf(new Map(Object.entries(series)), seconds),
  };
  assertEquals(report.trends, []);
  assertEquals(
    findingOf(report),
    "3 jobs, and the run of 11 s was too short to find growth, which takes at least 12 s " +
      "at --sample-ms 1000",
  );
  assertEquals(renderSoakReport(report).includes("<table"), false);
  const enough = samples(() => 1, 0, SAMPLES_OF_RUN_MIN);
  assertEquals(
    trendsOf(new Map([["worker-1 (1)", enough]]), SAMPLES_OF_RUN_MIN).length,
    MEASURES.length,
  );
});

const MEASURED = Deno.build.os === "linux" ? MEASURES : (["rss", "heap"] as const);

/** The names of the processes with a sample of each measure. */
function sampledIn({ series }: SoakReport): string[] {
  const sampled = Object.entries(series).filter(([, samples]) =>
    MEASURED.every((measure) => samples.some((sample) => (sample[measure] ?? 0) > 0))
  );
  return sampled.map(([name]) => name.replace(/ \(\d+\)$/, "")).sort();
}

/** Runs the program; its status has to agree with its table. Returns its report, and what it said. */
async function soakFor(minutes: number): Promise<{ report: SoakReport; said: string }> {
  const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "leat-soak-" });
  const path = `${folder}/report.html`;
  await using child = startChild("cli/soak.ts", {
    args: [
      ...["--minutes", `${minutes}`, "--sample-ms", "100", "--lanes", "1", "--workers", "1"],
      ...["--modes", "DYNAMIC", "--elements", "320", "--work", "1000", "--report", path],
    ],
    flags: FLAGS,
    stopTimeoutMs: 20_000,
  });
  const { code } = await soon("the program's end", child.status);
  const said = `${child.stdout.text}\n${child.stderr.text}`;
  assertEquals(code, child.stdout.text.includes("GROWS") ? 1 : 0, said);
  const [, json = ""] = /id="results">(.*?)<\/script>/s.exec(await Deno.readTextFile(path)) ?? [];
  const logs = /logs of the processes: (\S+)/.exec(child.stderr.text)?.[1];
  for (const each of [folder, ...(logs === undefined ? [] : [logs])]) {
    await Deno.remove(each, { recursive: true });
  }
  return { report: JSON.parse(json), said };
}

Deno.test("a short soak samples every process, and its status agrees with its table", async () => {
  const processes = ["dispatcher", "readers", "worker-1"];
  let minutes = 0.05;
  let { report, said } = await soakFor(minutes);
  // On a busy machine, the first sample may take longer than that.
  while (minutes < 1 && sampledIn(report).length < processes.length) {
    ({ report, said } = await soakFor(minutes *= 5));
  }
  assert(report.runs["DYNAMIC"]! > 0, said);
  assertEquals(report.violations, []);
  assertEquals(sampledIn(report), processes, said);
});

Deno.test("cli/soak.ts explains its options, and refuses invalid ones", async () => {
  await using help = startChild("cli/soak.ts", { args: ["--help"], flags: FLAGS });
  assertEquals((await help.status).code, 0);
  for (const part of ["Usage: deno task soak", "--minutes", "--chaos", "rss", "25 %, or 32 MiB"]) {
    assertStringIncludes(help.stdout.text, part);
  }
  await using wrong = startChild("cli/soak.ts", { args: ["--chaos", "fire"], flags: FLAGS });
  assertEquals((await wrong.status).code, 2);
  await using none = startChild("cli/soak.ts", {
    args: ["--chaos", "kill", "--spared", "2"],
    flags: FLAGS,
  });
  assertEquals((await none.status).code, 2);
  assertMatch(none.stderr.text, /--spared is 2 of 2 workers.*spare fewer/s);
  await using nowhere = startChild("cli/soak.ts", {
    args: ["--minutes", "0.05", "--report", "/tmp/leat-no-such-folder/soak.html"],
    flags: FLAGS,
  });
  assertEquals((await nowhere.status).code, 2);
  // Before anything is started.
  assertMatch(nowhere.stderr.text, /^error: Cannot write the report '.*soak.html'.*with --report/s);
  assertMatch(wrong.stderr.text, /--chaos is 'fire', but has to be one of none, kill, pause, cut/);
});

Deno.test("an interrupted soak says that nothing was judged, and writes no report", async () => {
  const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "leat-soak-" });
  await using child = startChild("cli/soak.ts", {
    args: [
      ...["--lanes", "1", "--workers", "1", "--modes", "DYNAMIC", "--elements", "32"],
      ...["--work", "0", "--report", `${folder}/report.html`],
    ],
    flags: FLAGS,
    stopTimeoutMs: 20_000,
  });
  assert(await child.stderr.match(/DYNAMIC job 1 is done/) !== undefined, child.stderr.text);
  child.kill("SIGINT");
  assertEquals((await soon("the program's end", child.status)).code, 130);
  assertMatch(child.stderr.text, /Interrupted after \d+ s: .* no report was written/);
  assertEquals([...Deno.readDirSync(folder)], []);
  await Deno.remove(folder);
});
