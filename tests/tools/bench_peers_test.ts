/** The comparison with other libraries: every side has every case. */
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { differenceOf, disagreements } from "../../bench/peers/agreement.ts";
import { CASES } from "../../bench/peers/cases.ts";
import * as pipelines from "../../bench/peers/leat/python.ts";
import { PIPELINES } from "../../bench/peers/leat/pipelines.ts";
import { checkOf, versionsOf } from "../../bench/peers/environment.ts";
import { cpuTicks, untilSteady } from "../../bench/peers/idle.ts";
import { measureCase } from "../../bench/peers/measure.ts";
import { renderMarkdown } from "../../bench/peers/markdown.ts";
import type { PeerReport } from "../../bench/peers/report.ts";

Deno.test("bench:peers knows each case's pipeline on every side", async () => {
  const scripts = new Map<string, string>();
  for (const { name, pipeline, peers, isInPython = false } of CASES) {
    assert(isInPython || pipeline in PIPELINES, name);
    for (const peer of isInPython ? ["leat", ...peers] : peers) {
      const path = new URL(`../../bench/peers/python/${peer}_side.py`, import.meta.url);
      const script = scripts.get(peer) ?? await Deno.readTextFile(path);
      scripts.set(peer, script);
      const known = /^(service|host)-/.exec(pipeline)?.[0] ?? `"${pipeline}"`;
      assert(script.includes(known), `${peer}: ${name}`);
    }
  }
});

Deno.test("bench:peers reads every pipeline of Leat's side in Python", async () => {
  const script = new URL("../../bench/peers/python/leat_side.py", import.meta.url);
  const read = [...(await Deno.readTextFile(script)).matchAll(/(?:rows|reading)\("(\w+)"/g)];
  assertEquals(read.map(([, name]) => name).sort(), Object.keys(pipelines).sort());
  const { value } = await pipelines.numbers().iterator().next();
  assertEquals(value?.shape, [1_024]);
});

Deno.test("bench:peers runs Leat's small pipelines and counts their elements", async () => {
  const files = { images: [], records: [], texts: [], sequences: [] };
  for (const { pipeline } of CASES.filter(({ part }) => part === "overhead")) {
    await using running = await PIPELINES[pipeline]!(files);
    assertEquals(await running.step(), 1_024, pipeline);
  }
});

Deno.test("bench:peers trains on batches of one bucket in each coordinated step", async () => {
  const path = await Deno.makeTempFile();
  try {
    const lines = Array.from({ length: 64 }, (_, at) => Array(1 + at * 8).fill(7).join(" "));
    await Deno.writeTextFile(path, lines.join("\n"));
    const files = { images: [], records: [], texts: [], sequences: [path] };
    await using running = await PIPELINES["coordinated-rounds"]!(files);
    for (let step = 0; step < 8; step++) assertEquals(await running.step(), 1);
    const padding = running.also!["% padding"]!;
    assert(padding > 0 && padding < 50, `${padding} % padding`);
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("bench:peers writes a page of Markdown with the goals that were missed", () => {
  const result = (name: string, part: "text" | "records", leatRatio: number) => ({
    ...{ name, part, unit: "texts/s", failed: {} },
    sides: [
      { side: "leat", rates: [6], median: 6, spread: 0.1, leatRatio: 1, ratioSpread: 0 },
      { side: "tensorflow", rates: [2], median: 2, spread: 0.2, leatRatio, ratioSpread: 0.3 },
    ],
  });
  const report: PeerReport = {
    startedAt: "2026-01-02T03:04:05Z",
    commandLine: "deno task bench:peers",
    machine: { Cores: "2" },
    versions: { "tensorflow-cpu": "1.2.3" },
    missing: {},
    results: [result("text-bucket-pad", "text", 6), result("records-large", "records", 1)],
  };
  const page = renderMarkdown(report);
  assertStringIncludes(page, "Cores: 2. tensorflow-cpu: 1.2.3.");
  assertStringIncludes(page, "1 of 2 goals are met");
  assertStringIncludes(page, "| records-large | tf.data | 1.00 (30 %) | 1.50 |");
  assertStringIncludes(page, "| text-bucket-pad | texts/s | 6.00 | 2.00 | 6.00 (30 %) | 10, 20 |");
  assert(!page.includes("| text-bucket-pad | tf.data |"));
});

/** A side that answers every request with a line. */
function answering(line: object) {
  const script = `while read request; do echo '${JSON.stringify(line)}'; done`;
  return { command: "sh", args: ["-c", script], pinned: false };
}

Deno.test("disagreements names the sides whose image is not Leat's", async () => {
  const image = { shape: [1, 4, 1], values: [0, 1, 5, 9] };
  const found = await disagreements(
    CASES.find(({ name }) => name === "resize-crop-all-cores")!,
    new Map([
      ["leat", answering(image)],
      ["tensorflow", answering({ ...image, values: [9, 5, 1, 0] })],
      ["torch", answering({ ...image, values: [9, 1, 5, 0] })],
      ["spdl", answering({ ...image, shape: [4, 1, 1] })],
    ]),
  );
  assertEquals(Object.keys(found).sort(), ["spdl", "torch"]);
  assertStringIncludes(found.torch!, "pixels differ from Leat's by 0.56 standard deviations");
  assertStringIncludes(found.spdl!, "has the shape [4,1,1], Leat's [1,4,1]");
});

Deno.test("differenceOf compares only shapes where pixels are random", () => {
  const image = { shape: [1, 2, 1], values: [0, 9] };
  assertEquals(differenceOf(image, { ...image, values: [5, 5] }, "shape"), undefined);
});

Deno.test("bench:peers compares the image that every side crops from the middle", () => {
  const checked = CASES.filter(({ agreement }) => agreement === "pixels").map(({ name }) => name);
  assertEquals(checked, ["decode-all-cores", "resize-crop-all-cores", "python-images"]);
});

Deno.test("bench:peers crops before it resizes on every side", async () => {
  const orders = {
    tensorflow: ["resize_crop", /decode_and_crop_jpeg[^]*resize/],
    torch: ["resize_crop", /functional\.crop[^]*resize/],
    spdl: ["centre", /crop=[^]*scale=/],
  } as const;
  for (const [peer, [name, order]] of Object.entries(orders)) {
    const path = new URL(`../../bench/peers/python/${peer}_side.py`, import.meta.url);
    const functions = (await Deno.readTextFile(path)).split("\ndef ");
    assert(order.test(functions.find((one) => one.startsWith(`${name}(`))!), peer);
  }
});

Deno.test("measureCase waits for each side and begins every round with another", async () => {
  const path = await Deno.makeTempFile();
  const side = (name: string) => {
    const script = `while read ms; do echo ${name} >> ${path}; echo '{"rate": 1}'; done`;
    return [name, { command: "sh", args: ["-c", script], pinned: false }] as const;
  };
  try {
    await measureCase(CASES[0]!, new Map([side("leat"), side("torch"), side("grain")]), {
      ...{ rounds: 3, windowMs: 10 },
      untilIdle: () => Deno.writeTextFile(path, "idle\n", { append: true }),
    });
    assertEquals(
      (await Deno.readTextFile(path)).replaceAll("\nidle\n", " ").trim().split(" "),
      [
        ...["leat", "torch", "grain"], // the windows before the first round
        ...["leat", "torch", "grain"],
        ...["torch", "grain", "leat"],
        ...["grain", "leat", "torch"],
      ],
    );
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("untilSteady reads until a value stops growing, and gives up on one that never does", async () => {
  const readings = [10, 50, 90, 91, 200].values();
  assert(await untilSteady(() => Promise.resolve(readings.next().value!), async () => {}));
  assertEquals(readings.next().value, 200);
  let ticks = 0;
  assert(!await untilSteady(() => Promise.resolve(ticks += 2), async () => {}));
});

Deno.test("cpuTicks adds up a process and all its descendants", () => {
  const stat = (pid: number, parent: number, user: number, system: number) =>
    `${pid} (a (b) c) S ${parent} 1 1 0 -1 0 0 0 0 0 ${user} ${system} 0 0 20 0 1 0`;
  const stats = [stat(1, 0, 900, 900), stat(7, 1, 1, 2), stat(8, 7, 10, 20), stat(9, 8, 100, 200)];
  assertEquals(cpuTicks(`${stats.join("\n")}\n`, 7), 333);
  assertEquals(cpuTicks("", 7), 0);
});

Deno.test("bench:peers finds a package of another version than the pinned one", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${folder}/peer-1.2.dist-info`);
    const metadata = "Metadata-Version: 2.1\nName: peer\nVersion: 1.2+cpu\n";
    await Deno.writeTextFile(`${folder}/peer-1.2.dist-info/METADATA`, metadata);
    const check = async (pin: string) => {
      const args = ["-c", checkOf("json"), pin];
      const { stderr } = await new Deno.Command("python3", { args, cwd: folder }).output();
      return new TextDecoder().decode(stderr).trim();
    };
    assertEquals(await check("peer==1.2"), "");
    assertEquals(await check("peer==1.3"), "peer is 1.2, not 1.3");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("versionsOf names the Deno of Leat's side in Python apart from the machine's", () => {
  const names = Object.keys(versionsOf(new Set(["leat", "torch"])));
  assertEquals(names, ["Deno of Leat's side in Python", "msgpack", "torch", "torchvision"]);
});
