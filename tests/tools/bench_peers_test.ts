/** The comparison with other libraries: every side has every case. */
import { assert, assertEquals } from "../assert.ts";
import { CASES } from "../../bench/peers/cases.ts";
import * as pipelines from "../../bench/peers/leat/python.ts";
import { PIPELINES } from "../../bench/peers/leat/pipelines.ts";

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
  const files = { images: [], records: [], texts: [] };
  for (const { pipeline } of CASES.filter(({ part }) => part === "overhead")) {
    await using running = await PIPELINES[pipeline]!(files);
    assertEquals(await running.step(), 1_024, pipeline);
  }
});
