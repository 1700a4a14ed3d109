/**
 * The report as a file: complete, well-formed, self-contained, and clear about the source of
 * numbers.
 */

import { renderReport, writeReport } from "../../cli/simulate/report.ts";
import { measured, modelled } from "../../cli/lib/quantity.ts";
import type {
  CoordinatedReadsExperiment,
  Experiment,
  ScaleOutExperiment,
  SharingExperiment,
  SimulationReport,
  WorkerFailureExperiment,
} from "../../cli/simulate/results.ts";
import { summarize } from "../../cli/simulate/summary.ts";
import { quantile } from "../../cli/lib/statistics.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { sampleReport } from "./sample_report.ts";

const VOID_ELEMENTS = new Set(["meta", "br", "link", "img", "input", "hr"]);

/** The elements of a page; fails if one is not closed in order. */
function elementsOf(html: string): { name: string; attributes: string }[] {
  const elements: { name: string; attributes: string }[] = [];
  const open: string[] = [];
  const body = html.replace(/<(style|script)\b([^>]*)>[\s\S]*?<\/\1>/g, "<$1$2></$1>");
  const tags = /<(\/?)([a-zA-Z][\w-]*)((?:\s+[\w:-]+(?:="[^"<]*")?)*)\s*(\/?)>/g;
  for (const [, slash, name = "", attributes = "", selfClosed] of body.matchAll(tags)) {
    if (slash) assertEquals(name, open.pop(), `</${name}> closes what was opened last`);
    else {
      elements.push({ name, attributes });
      if (!selfClosed && !VOID_ELEMENTS.has(name)) open.push(name);
    }
  }
  assertEquals(open, []);
  const rest = body.replace(tags, "").replace("<!doctype html>", "");
  assert(!rest.includes("<"), `a stray < before ${rest.slice(rest.indexOf("<")).slice(0, 60)}`);
  return elements;
}

function experiment<K extends Experiment["kind"]>(kind: K): Extract<Experiment, { kind: K }> {
  const found = sampleReport().experiments.find((it) => it.kind === kind);
  assert(found?.kind === kind);
  return found as Extract<Experiment, { kind: K }>;
}

/** The part of the page about one experiment. */
function sectionOf(html: string, id: string): string {
  const section = html.split("<section ").find((part) => part.startsWith(`id="${id}"`));
  assert(section !== undefined, `no section ${id}`);
  return section;
}

function reportOf(...experiments: Experiment[]): SimulationReport {
  return { ...sampleReport(), experiments };
}

Deno.test("renderReport is a well-formed page with one section and its plots for each experiment", () => {
  const html = renderReport(sampleReport());
  const elements = elementsOf(html);
  const count = (name: string) => elements.filter((it) => it.name === name).length;
  assertEquals(count("section"), 4);
  assertEquals(count("figure"), 3 + 4 + 2 + 1);
  assertEquals(count("table"), 4);
});

Deno.test("renderReport is self-contained", () => {
  const html = renderReport(sampleReport());
  for (const { name, attributes } of elementsOf(html)) {
    assert(!["link", "img", "iframe", "object", "embed"].includes(name), `<${name}>`);
    for (const [, reference] of attributes.matchAll(/(?:src|href|xlink:href)="([^"]*)"/g)) {
      assertMatch(reference ?? "", /^#/, `${name} refers to ${reference}`);
    }
  }
  assert(!/url\(\s*["']?(?!#)|@import/.test(html), "a style sheet that fetches");
  assert(!/<script(?! type="application\/json")/.test(html), "a script that runs");
});

Deno.test("renderReport labels every plot for screen readers", () => {
  const svgs = renderReport(sampleReport()).match(/<svg[^>]*role="img"[^>]*>.{0,40}/gs) ?? [];
  assertEquals(svgs.length, 10);
  for (const svg of svgs) assertMatch(svg, /aria-label="[^"]+"[^>]*><title>/);
});

Deno.test("renderReport marks measured and modelled points differently and explains both", () => {
  const scaleOut = experiment("scale_out");
  const marks = (provenance: typeof measured) => {
    const curves = scaleOut.curves.map((curve) => ({
      ...curve,
      runs: curve.runs.map((run) => ({ ...run, throughput: provenance(5, "batches/s") })),
    }));
    const html = sectionOf(renderReport(reportOf({ ...scaleOut, curves })), "scale-out");
    const figure = html.slice(html.indexOf("<figure"), html.indexOf("</figure>"));
    return {
      measured: figure.match(/class="measured"[^>]*>/g)?.length ?? 0,
      modelled: figure.match(/class="modelled"[^>]*>/g)?.length ?? 0,
      titles: figure.match(/\((measured|modelled)\)<\/title>/g) ?? [],
      shapes: figure.match(/<g [^>]*class="(?:measured|modelled)"[^>]*>.*?<\/g>/gs) ?? [],
      legend: figure.slice(0, figure.indexOf("</ul>")),
    };
  };
  const allMeasured = marks(measured);
  const allModelled = marks(modelled);
  assert(allMeasured.titles.every((title) => title.includes("(measured)")));
  assertEquals(allModelled.titles.filter((title) => title.includes("(modelled)")).length, 12);
  assert(!allMeasured.legend.includes("modelled"));
  assertStringIncludes(allModelled.legend, "modelled");
  assert(allModelled.modelled > allMeasured.modelled);
  for (const group of [...allMeasured.shapes, ...allModelled.shapes]) {
    const isMeasured = group.includes('class="measured"');
    assertEquals(group.includes("<circle"), isMeasured, "discs are measured");
    assertEquals(group.includes("<path"), !isMeasured, "diamonds are modelled");
  }
});

Deno.test("renderReport escapes its input", () => {
  const report = sampleReport();
  report.run.commandLine = `deno task simulate --images "</code><script>alert(1)</script>&"`;
  report.experiments[0]?.notes.push("</script><b>bold</b>");
  const html = renderReport(report);
  elementsOf(html);
  assertStringIncludes(html, "&lt;script&gt;alert(1)");
  assert(!html.includes("<b>bold"));
});

Deno.test("renderReport contains its numbers as data for programs", () => {
  const html = renderReport(sampleReport());
  const json = /<script type="application\/json" id="results">(.*?)<\/script>/s.exec(html)?.[1];
  assertEquals(JSON.parse(json ?? ""), sampleReport());
});

Deno.test("renderReport shows the experiments that ran, under their fixed letters", () => {
  const html = renderReport(reportOf(experiment("coordinated_reads")));
  assertStringIncludes(sectionOf(html, "coordinated-reads"), "(c)");
  assertEquals(html.match(/<section /g)?.length, 1);
  elementsOf(renderReport(reportOf()));
});

Deno.test("renderReport accepts runs with few results", () => {
  const scaleOut: ScaleOutExperiment = { ...experiment("scale_out") };
  scaleOut.curves = scaleOut.curves.slice(0, 1).map((curve) => ({ ...curve, runs: [] }));
  const sharing: SharingExperiment = { ...experiment("sharing"), runs: [] };
  const failure: WorkerFailureExperiment = { ...experiment("worker_failure"), timeline: [] };
  const reads: CoordinatedReadsExperiment = { ...experiment("coordinated_reads") };
  reads.coordinated = { ...reads.coordinated, stepTimesMs: [] };
  const html = renderReport(reportOf(scaleOut, sharing, reads, failure));
  elementsOf(html.replace(/<script[\s\S]*<\/script>/, ""));
  assert(
    !/NaN|Infinity|undefined/.test(html),
    /.{60}(NaN|Infinity|undefined).{20}/.exec(html)?.[0],
  );
});

Deno.test("writeReport writes the whole file and leaves no other", async () => {
  const folder = await Deno.makeTempDir({ dir: "/tmp" });
  try {
    await Deno.writeTextFile(`${folder}/report.html`, "an older report");
    writeReport(sampleReport(), `${folder}/report.html`);
    assertEquals([...Deno.readDirSync(folder)].map((it) => it.name), ["report.html"]);
    assertMatch(
      await Deno.readTextFile(`${folder}/report.html`),
      /^<!doctype html>[\s\S]*<\/html>\n$/,
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("summarize computes the finding of scale-out from the runs", () => {
  const { finding, headline } = summarize({
    ...experiment("scale_out"),
    hostCores: 4,
    curves: [{
      storageLatencyMs: 0,
      colocated: scaleOutRun(0, 2, 1),
      runs: [scaleOutRun(1, 1.5, 2), scaleOutRun(8, 6, 0.5)],
      ideal: measured(8, "batches/s"),
      coresEndAtWorkers: 8,
    }],
  });
  assertStringIncludes(finding, "reaches 2.00 batches/s, 25\u00a0% of the 8.00");
  assertStringIncludes(finding, "8 workers reach 6.00 (3.00×, 75\u00a0% of the ideal)");
  assertStringIncludes(finding, "costs 2.00 times less");
  assertStringIncludes(finding, "From 8 workers on, this host's 4 cores bound the curve");
  assertEquals(headline?.quantity, measured(3, "1"));
});

Deno.test("summarize compares sharing with one trainer with a deployment of its own", () => {
  const run = (mode: "A" | "C", trainers: number, cpuSeconds: number) => ({
    mode,
    trainers,
    jobTime: measured(2, "s"),
    batchesProduced: measured(100, "batches"),
    bytesRead: measured(1000, "bytes"),
    cpuTime: measured(cpuSeconds, "s"),
    batchesSkipped: measured(0, "batches"),
  });
  const { headline } = summarize({
    ...experiment("sharing"),
    runs: [run("A", 1, 5), run("A", 16, 6), run("C", 1, 4), run("C", 16, 64)],
  });
  assertEquals(headline?.quantity, measured(1.5, "1"));
});

Deno.test("summarize distinguishes the rates before and after a kill", () => {
  const { table } = summarize({
    ...experiment("worker_failure"),
    intervalMs: 100,
    killedAtMs: 250,
    // Intervals 0 and 1 are before the kill, 2 holds it, 3 and 4 are after it; 5 is partial.
    timeline: [{ worker: "worker 1", batches: [4, 4, 9, 1, 1, 0], provenance: "measured" }],
  });
  assertEquals(table.rows[0]?.slice(-2), [measured(40, "batches/s"), measured(10, "batches/s")]);
});

Deno.test("quantile takes the nearest rank", () => {
  assertEquals(quantile([5, 1, 3, 2, 4], 0.5), 3);
  assertEquals(quantile([5, 1, 3, 2, 4], 0.95), 5);
  assertEquals(quantile([7], 0), 7);
});

function scaleOutRun(workers: number, batchesPerSecond: number, dollars: number) {
  return {
    workers,
    throughput: measured(batchesPerSecond, "batches/s"),
    stallShare: measured(0, "1"),
    cpu: measured(1, "cores"),
    costPerThousandBatches: modelled(dollars, "USD"),
  };
}
