/**
 * The main job as a user starts it: end to end at its smallest, interrupted, and with wrong
 * options.
 */

import { join } from "node:path";
import type {
  CoordinatedReadsExperiment,
  Experiment,
  ScaleOutExperiment,
  SharingExperiment,
  SharingMode,
  SimulationReport,
  WorkerFailureExperiment,
} from "../../cli/simulate/results.ts";
import { Tensor } from "../../core/tensor.ts";
import { Images } from "../../platform/media/images.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { type Child, startChild } from "../lib/child.ts";
import { until } from "../lib/until.ts";
import { interruptedAt } from "./interruption.ts";

const IMAGES = 24;
/** Small, because decoding photographs would take most of the test's time. */
const HEIGHT = 48;
const WIDTH = 64;
const TEXTS = 400;
const FLAGS = ["-P"];

function simulate(...args: string[]): Child {
  return startChild("cli/simulate.ts", { args, flags: FLAGS });
}

/** A temporary folder of the test. */
async function withFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "leat-simulate-" });
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A user's own data: a folder of JPEGs and a file of text. */
async function writeData(folder: string): Promise<string[]> {
  const images = join(folder, "images");
  await Deno.mkdir(images);
  const codec = new Images();
  for (let index = 0; index < IMAGES; index++) {
    const pixels = Uint8Array.from({ length: HEIGHT * WIDTH * 3 }, (_, at) => at * (index + 1));
    const image = new Tensor("uint8", [HEIGHT, WIDTH, 3], pixels);
    await Deno.writeFile(join(images, `${index}.jpg`), await codec.encode(image, { quality: 90 }));
  }
  const text = join(folder, "text.txt");
  const line = (index: number) => "word ".repeat(1 + (index * 7_919) % 300);
  await Deno.writeTextFile(text, Array.from({ length: TEXTS }, (_, i) => line(i)).join("\n"));
  return ["--images", images, "--text", text, "--corpus", join(folder, "corpus")];
}

/** The page's data for programs. */
async function readResults(path: string): Promise<SimulationReport> {
  const page = await Deno.readTextFile(path);
  const [, json = ""] = /<script type="application\/json" id="results">(.*?)<\/script>/s.exec(
    page,
  )!;
  return JSON.parse(json);
}

function find<E extends Experiment>(report: SimulationReport, kind: E["kind"]): E {
  return report.experiments.find((experiment) => experiment.kind === kind) as E;
}

Deno.test("simulate runs all experiments, prints their tables and writes the report", async () => {
  await withFolder(async (folder) => {
    const report = join(folder, "report.html");
    const sizes = ["--workers", "2", "--trainers", "1,2", "--storage-latency-ms", "0"];
    const data = await writeData(folder);
    await using child = simulate("--quick", ...sizes, ...data, "--report", report);
    const { code } = await child.status;
    assertEquals(code, 0, child.stderr.text);
    for (const heading of ["Throughput and cost", "CPU time", "Padding and step", "One epoch"]) {
      assertStringIncludes(child.stdout.text, heading);
    }
    assertMatch(child.stdout.text.trim().split("\n").at(-1)!, /report\.html$/);
    assertMatch(
      child.stderr.text,
      /scale-out: .*sharing: .*coordinated reads: .*worker failure: /s,
    );
    const results = await readResults(report);
    assertEquals(results.run.corpus.length, 2);
    checkScaleOut(find(results, "scale_out"));
    checkSharing(find(results, "sharing"));
    checkCoordinatedReads(find(results, "coordinated_reads"));
    checkWorkerFailure(find(results, "worker_failure"));
  });
});

function checkScaleOut({ curves }: ScaleOutExperiment): void {
  assertEquals(curves.map(({ storageLatencyMs }) => storageLatencyMs), [0]);
  for (const { colocated, runs, ideal } of curves) {
    assertEquals(runs.map(({ workers }) => workers), [2]);
    for (const { throughput, stallShare, cpu } of [colocated, ...runs]) {
      // Each is of another second, in which this machine may have paused.
      assert(throughput.value > 0 && ideal.value > 0);
      assert(stallShare.value >= 0 && stallShare.value <= 1);
      assert(cpu.value > 0);
    }
  }
}

function checkSharing({ runs }: SharingExperiment): void {
  const of = (mode: SharingMode) => runs.find((run) => run.mode === mode && run.trainers === 2)!;
  for (const measure of ["batchesProduced", "bytesRead"] as const) {
    const [shared, unshared, dedicated] = [of("A"), of("B"), of("C")].map((run) =>
      run[measure].value
    );
    assert(shared! < unshared!, `${measure}: ${shared} with sharing, ${unshared} without`);
    assert(shared! < dedicated!, `${measure}: ${shared} with sharing, ${dedicated} dedicated`);
  }
}

function checkCoordinatedReads(experiment: CoordinatedReadsExperiment): void {
  const { uncoordinated, bucketed, coordinated } = experiment;
  assert(coordinated.paddingShare.value < uncoordinated.paddingShare.value);
  assert(bucketed!.paddingShare.value < uncoordinated.paddingShare.value);
  assert(coordinated.idleShare.value < bucketed!.idleShare.value);
  assertEquals(coordinated.stepTimesMs.length, uncoordinated.stepTimesMs.length);
}

function checkWorkerFailure({ elements, timeline }: WorkerFailureExperiment): void {
  const { expected, delivered, lost, repeated } = elements;
  assertEquals(expected.value, IMAGES);
  assertEquals(delivered.value + lost.value, expected.value);
  assertEquals(repeated.value, 0);
  assert(delivered.value > 0);
  assertEquals(timeline.length, 3);
}

Deno.test("simulate stops at Ctrl-C and reports the finished experiments", async () => {
  await withFolder(async (folder) => {
    const report = join(folder, "report.html");
    // Without `--text`, which (b) and (d) do not use.
    const data = (await writeData(folder)).toSpliced(2, 2);
    const chosen = ["--only", "b,d", "--trainers", "1"];
    await using child = startChild("cli/simulate.ts", {
      args: ["--quick", ...chosen, ...data, "--report", report],
      flags: [...FLAGS, ...interruptedAt({ line: "^worker failure: 1 run" })],
    });
    assertEquals((await child.status).code, 130, child.stderr.text);
    assertStringIncludes(child.stdout.text, "Interrupted after 1 of 2 experiments");
    const results = await readResults(report);
    assertEquals(results.experiments.map(({ kind }) => kind), ["sharing"]);
  });
});

Deno.test("simulate reports the finished experiments before the error of a later one", async () => {
  await withFolder(async (folder) => {
    const report = join(folder, "report.html");
    const data = await writeData(folder);
    const sizes = ["--workers", "1", "--storage-latency-ms", "0"];
    await using child = simulate(
      ...["--quick", "--only", "a,c", ...sizes, ...data, "--report", report],
    );
    // While (a) runs: its images are not touched, and (c) has not opened its texts yet.
    await until(() => child.stderr.text.includes("scale-out: "));
    for (const { name } of Deno.readDirSync(join(folder, "corpus"))) {
      const isText = name.includes("text");
      if (isText) await Deno.remove(join(folder, "corpus", name), { recursive: true });
    }
    assertEquals((await child.status).code, 1);
    assertStringIncludes(child.stderr.text, "user-text-");
    assertStringIncludes(child.stdout.text, "Throughput and cost");
    const results = await readResults(report);
    assertEquals(results.experiments.map(({ kind }) => kind), ["scale_out"]);
  });
});

const REFUSALS: [name: string, args: string[], message: RegExp][] = [
  [
    "a folder of images that is missing",
    ["--images", "/tmp/leat-no-such-folder"],
    /leat-no-such-folder/,
  ],
  ["a file of text that is missing", ["--text", "/tmp/leat-no-such-file"], /leat-no-such-file/],
  ["a report that is a folder", ["--report", "/tmp"], /report '\/tmp': .*folder.*--report/],
  [
    "a report in a folder that is missing",
    ["--report", "/tmp/leat-no/r.html"],
    /leat-no\/r\.html.*--report/,
  ],
  ["a cache folder that cannot be", ["--corpus", "/proc/x"], /Nothing can be kept in .\/proc\/x/],
];

for (const [name, args, message] of REFUSALS) {
  Deno.test(`simulate refuses ${name}`, async () => {
    await using child = simulate("--quick", ...args);
    const { code } = await child.status;
    assertEquals(code, 2);
    assertMatch(child.stderr.text, message);
    // Nothing was generated or run before it.
    assertMatch(child.stderr.text, /^error: /);
  });
}
