/** A process that has used its host before it has a task, as one that lists splits. */
import { Dataset } from "../../../mod.ts";
import { assertEquals } from "../../assert.ts";
import { until } from "../../lib/until.ts";
import { startedWithHost } from "./host_stand_in.ts";
import { NO_SPLITS, settingsOf } from "./sandbox_lib.ts";

/** Requests a list of files under the runner's own name. */
const ASK_HOST = `(async () => {
  const { encodeMessage } = await import(args.codec);
  const [, , node, incarnation] = Deno.args;
  const source = { node, path: "/edge", incarnation: incarnation + "-1" };
  const target = { node: "worker", path: "/edge" };
  const body = { method: "list", args: "*" };
  const message = encodeMessage({
    kind: "ask", source, target, number: 1e6, id: 1e6, method: "host", body, timeoutMs: Infinity,
  });
  Deno.stdout.writeSync(new Uint8Array(new Uint32Array([message.length, 2 ** 32 - 1]).buffer));
  Deno.stdout.writeSync(message);
})()`;

Deno.test("ConfinedProcess.serve tells a host that is in use the task for which it reads services", async () => {
  const asked: [method: string, args: unknown][] = [];
  const process = {
    isAlive: true,
    ask: (method: string, args: unknown) => Promise.resolve(void asked.push([method, args])),
    terminate: () => Promise.resolve(),
  };
  const runner = await startedWithHost(process);
  const codec = import.meta.resolve("../../../transport/codec.ts");
  const asking = Dataset.from([ASK_HOST]).map(
    (code, { args }) => new Function("args", `return (${code})`)(args),
    { captures: { args: { codec } } },
  );
  await runner.ask("run", { ...settingsOf(asking), shared: false });
  runner.ask("next", {}).catch(() => {});
  await until(() => asked.length > 0);
  const task = { clusterId: "c", taskId: 7 };
  runner.serve(NO_SPLITS, task);
  await until(() => asked.length > 1);
  assertEquals(asked.map(([method]) => method), ["serve", "assign"]);
  assertEquals(asked[1]![1], task);
  await runner.terminate();
});
