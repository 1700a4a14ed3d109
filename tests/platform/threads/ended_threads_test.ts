/** Ended threads leave nothing behind: comlink's registry is cleared with them. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as comlink from "comlink";
import { Dataset } from "../../../mod.ts";
import { ThreadHub } from "../../../transport/thread_hub.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { RunnerThreadControl } from "../../../platform/threads/runner_thread.ts";
import { assertEquals } from "../../assert.ts";
import { NO_SPLITS, Sandbox, settingsOf } from "../sandbox/sandbox_lib.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/**
 * Objects of a thread are released some event loop iterations after its end, and later on a busy
 * machine.
 */
const ROUNDS_MAX = 1_000;
const ROUND_MS = 10;

/** How many objects remain after garbage collection. */
async function leftOf(refs: readonly WeakRef<object>[]): Promise<number> {
  const left = () => refs.filter((ref) => ref.deref() !== undefined).length;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    // A WeakRef keeps its object until the end of the macrotask that read it.
    await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
    collectGarbage();
    if (left() === 0) return 0;
  }
  return left();
}

Deno.test("ConfinedRunners keeps nothing of an ended process", async () => {
  const refs: WeakRef<object>[] = [];
  const run = async (sandbox: Sandbox) => {
    // The only reference to it.
    const splits = { ...NO_SPLITS };
    const runner = sandbox.runners.start(settingsOf(Dataset.range(1)), splits);
    assertEquals((await runner.next()).kind, "element");
    runner.dispose();
    refs.push(new WeakRef(splits));
  };
  {
    await using sandbox = await Sandbox.open();
    await run(sandbox);
  }
  assertEquals(await leftOf(refs), 0);
});

Deno.test("ThreadHub keeps nothing of a node's ended thread", async () => {
  const hub = new ThreadHub({
    world: new DenoWorld({ logLevel: "off" }),
    entry: new URL("../../../platform/threads/thread_entry.ts", import.meta.url),
  });
  const refs: WeakRef<object>[] = [];
  const run = async (end: "stop" | "terminate") => {
    const node = await hub.startNode({
      name: end,
      module: import.meta.resolve("../../transport/fixture_node.ts"),
      config: "with actor",
      world: { logLevel: "off" },
    });
    await node[end]();
    refs.push(new WeakRef(node));
  };
  await run("stop");
  await run("terminate");
  assertEquals(await leftOf(refs), 0);
  await hub.close();
});

Deno.test("RunnerThreadControl keeps nothing of a pipeline that was disposed while it waited for a split", async () => {
  const control = new RunnerThreadControl();
  const refs: WeakRef<object>[] = [];
  const run = async () => {
    const { port1, port2 } = new MessageChannel();
    const asked = Promise.withResolvers<void>();
    comlink.expose({ next: () => (asked.resolve(), new Promise<never>(() => {})) }, port1);
    const steps = new MessageChannel();
    control.start({ ...settingsOf(Dataset.range(1)), splits: true }, port2, steps.port2);
    steps.port1.postMessage({ only: undefined, wish: undefined, spent: [] });
    await asked.promise;
    control.retire();
    port1.close();
    steps.port1.close();
    // The ports keep their pending calls.
    refs.push(new WeakRef(port2), new WeakRef(steps.port2));
  };
  await run();
  assertEquals(await leftOf(refs), 0);
});
