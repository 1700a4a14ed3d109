/** What a deployment keeps of the programs that it started. */
import { ChildProcess } from "../../cli/cluster/child_process.ts";
import { Children } from "../../cli/cluster/children.ts";
import { assertEquals } from "../assert.ts";
import { soon } from "./lib.ts";

/** Runs the callbacks of settled promises. */
const settled = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

Deno.test("children that were killed and restarted many times are remembered only while they live", async () => {
  const children = new Children<{ name: number; ended: Promise<string> }>();
  const sizes = new Set<number>();
  for (let name = 0; name < 100; name++) {
    const { promise: ended, resolve: kill } = Promise.withResolvers<string>();
    children.add(Promise.resolve({ name, ended }));
    sizes.add(children.size);
    kill("SIGKILL");
    await ended;
    await settled();
  }
  assertEquals([...sizes], [1]);
  assertEquals(children.size, 0);
  assertEquals(await children.running(), []);
});

Deno.test("a child that could not be started is forgotten, and a starting one is awaited", async () => {
  const children = new Children<{ name: string; ended: Promise<string> }>();
  const ended = new Promise<string>(() => {});
  const late = Promise.withResolvers<{ name: string; ended: Promise<string> }>();
  children.add(Promise.reject(new Error("no such program")));
  children.add(Promise.resolve({ name: "at once", ended }));
  children.add(late.promise);
  const running = children.running();
  late.resolve({ name: "late", ended });
  assertEquals((await running).map(({ name }) => name), ["at once", "late"]);
  await settled();
  assertEquals(children.size, 2);
});

Deno.test("a killed process is forgotten", async () => {
  const children = new Children<ChildProcess>();
  const starting = ChildProcess.start("dispatcher", "cli/dispatcher.ts", ["--port", "0"], {
    onLog: () => {},
  });
  children.add(starting);
  const child = await starting;
  assertEquals(children.size, 1);
  child.kill();
  await soon("its end", child.ended);
  await settled();
  assertEquals(children.size, 0);
});
