/**
 * Pipelines that run in the thread they are made in.
 *
 * @module
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { PipelineRunners } from "../../../actors/worker/pipeline_runner.ts";
import { Dataset } from "../../../mod.ts";
import { DenoHost } from "../../../world/deno_host.ts";
import { assertEquals } from "../../assert.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

Deno.test("PipelineRunners keeps no runner that was disposed", async () => {
  const runners = new PipelineRunners(new DenoHost());
  const graph = Dataset.range(10).serialize();
  const settings = {
    graph,
    seed: "0000000000000001",
    salt: "0000000000000000",
    epoch: 0,
    splits: false,
    shared: false,
  };
  const splits = { next: () => Promise.resolve(null), total: () => Promise.resolve(0) };
  const refs: WeakRef<object>[] = [];
  for (let i = 0; i < 10; i++) {
    const runner = runners.start(settings, splits);
    assertEquals((await runner.next()).kind, "element");
    runner.dispose();
    refs.push(new WeakRef(runner));
  }
  // A WeakRef holds on until the macrotask that made it is over.
  await new Promise((resolve) => setTimeout(resolve, 0));
  collectGarbage();
  // The last one may still lie in a register.
  assertEquals(refs.slice(0, -1).filter((ref) => ref.deref() !== undefined).length, 0);
  await runners.close();
});
