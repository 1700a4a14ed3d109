/** The comparison with other libraries: every side has every case. */
import { assert, assertEquals } from "../assert.ts";
import { CASES } from "../../bench/peers/cases.ts";
import { PIPELINES } from "../../bench/peers/leat/pipelines.ts";

Deno.test("bench:peers knows each case's pipeline on every side", async () => {
  const scripts = new Map<string, string>();
  for (const { name, pipeline, peers } of CASES) {
    assert(pipeline in PIPELINES, name);
    for (const peer of peers) {
      const path = new URL(`../../bench/peers/python/${peer}_side.py`, import.meta.url);
      const script = scripts.get(peer) ?? await Deno.readTextFile(path);
      scripts.set(peer, script);
      const known = pipeline.startsWith("service-") ? "service-" : `"${pipeline}"`;
      assert(script.includes(known), `${peer}: ${name}`);
    }
  }
});

Deno.test("bench:peers runs Leat's small pipelines and counts their elements", async () => {
  const files = { images: [], records: [], texts: [] };
  for (const { pipeline } of CASES.filter(({ part }) => part === "overhead")) {
    await using running = await PIPELINES[pipeline]!(files);
    assertEquals(await running.step(), 1_024, pipeline);
  }
});
