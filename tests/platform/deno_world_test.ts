/** The platform on Deno keeps the contract of `World`. */
import { LeatError } from "../../core/error.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { assert, assertEquals, assertMatch, assertNotEquals, assertRejects } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";

Deno.test("macrotask keeps the order of calls, and runs those added meanwhile afterwards", async () => {
  const world = new DenoWorld();
  const order: string[] = [];
  await new Promise<void>((resolve) => {
    world.macrotask(() => {
      order.push("first");
      world.macrotask(() => {
        order.push("third");
        resolve();
      });
    });
    world.macrotask(() => order.push("second"));
    queueMicrotask(() => order.push("microtask"));
  });
  assertEquals(order, ["microtask", "first", "second", "third"]);
});

Deno.test("timer never fires early, in the order of delays, and not once cancelled", async () => {
  const world = new DenoWorld();
  // Delays count from each call. A machine that pauses this thread between the calls for longer than
  // they differ gives the later call the later end, which says nothing: the timers are set again.
  for (let spanMs = Infinity; spanMs > 20;) {
    const fired: number[] = [];
    const began = world.nowMs();
    const early: number[] = [];
    await new Promise<void>((resolve) => {
      for (const delayMs of [79.9, 0, 33.3, 122.2]) {
        world.timer(delayMs, () => {
          fired.push(delayMs);
          if (world.nowMs() - began < delayMs) early.push(delayMs);
          if (fired.length === 4) resolve();
        });
      }
      spanMs = world.nowMs() - began;
      world.timer(1, () => fired.push(-1)).cancel();
    });
    assertEquals(early, []);
    assertEquals(fired.toSorted((a, b) => a - b), [0, 33.3, 79.9, 122.2]);
    if (spanMs <= 20) assertEquals(fired, [0, 33.3, 79.9, 122.2]);
  }
});

Deno.test("timer supports delays longer than setTimeout's", async () => {
  const world = new DenoWorld();
  let fired = false;
  const timer = world.timer(2 ** 40, () => fired = true);
  await new Promise((resolve) => setTimeout(resolve, 10));
  timer.cancel();
  assertEquals(fired, false);
});

Deno.test("random repeats for a seed, forks independently of draws, and differs without a seed", () => {
  const [one, two] = [new DenoWorld({ seed: 7n }), new DenoWorld({ seed: 7n })];
  two.random.fork("x").next();
  assertEquals(one.random.next(), two.random.next());
  one.random.next();
  assertEquals(one.random.fork("y").hex64(), two.random.fork("y").hex64());
  assertNotEquals(one.random.fork("y").hex64(), one.random.fork("z").hex64());
  assertNotEquals(new DenoWorld().random.hex64(), new DenoWorld().random.hex64());
  assertMatch(one.random.hex64(), /^[0-9a-f]{16}$/);
});

Deno.test("openLog keeps a log in the folder, and refuses names that leave it", async () => {
  await using temporary = await TempFolder.make();
  const logFolder = temporary.path;
  const world = new DenoWorld({ logFolder });
  const log = await world.openLog("dispatcher");
  log.append(new Uint8Array([1, 2]));
  await log.close();
  const again = await world.openLog("dispatcher");
  assertEquals((await again.read()).records.map((record) => [...record]), [[1, 2]]);
  await again.close();
  for (const name of ["../x", "a/b", "", ".", "..", "a\\b"]) {
    const error = await assertRejects(() => world.openLog(name), LeatError);
    assertEquals(error.code, "invalid_argument");
  }
  const homeless = await assertRejects(() => new DenoWorld().openLog("x"), LeatError, "logFolder");
  assertEquals(homeless.code, "failed_precondition");
});

Deno.test("log writes one line per call, at its level and above", async () => {
  const module = import.meta.resolve("../../platform/deno_world.ts");
  const program = `
    import { DenoWorld } from ${JSON.stringify(module)};
    const world = new DenoWorld({ logLevel: "info" });
    world.log("debug", "unseen");
    world.log("warn", "two\\nlines", { count: 2n, text: "a b", none: undefined });
  `;
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  await Deno.writeTextFile(file, program);
  const { stderr } = await new Deno.Command("deno", {
    args: ["run", "--quiet", "--no-check", "--config", "deno.json", file],
  }).output();
  await Deno.remove(file);
  const lines = new TextDecoder().decode(stderr).trimEnd().split("\n");
  assertEquals(lines.length, 1, lines.join("\n"));
  assertMatch(lines[0]!, /^\S+Z WARN {2}two ⏎ lines count="2" text="a b"$/);
  assert(!lines[0]!.includes("unseen"));
});

Deno.test("log passes lines with their level to a given printer", () => {
  const printed: string[][] = [];
  const print = (level: string, line: string) => void printed.push([level, line.slice(-5)]);
  const world = new DenoWorld({ logLevel: "warn", print });
  world.log("info", "not this");
  world.log("warn", "this1");
  world.log("error", "this2");
  assertEquals(printed, [["warn", "this1"], ["error", "this2"]]);
});

Deno.test("log writes a text with long spaces without trying each of them as a line break", () => {
  const printed: string[] = [];
  const world = new DenoWorld({ print: (_, line) => void printed.push(line) });
  world.log("error", `${" ".repeat(4_000_000)}a \r\n \n b`);
  assertEquals(printed.map((line) => line.slice(-6)), [" a ⏎ b"]);
});

Deno.test("log prints untrusted text without terminal escapes and without forged lines", () => {
  const printed: string[] = [];
  const world = new DenoWorld({ print: (_, line) => void printed.push(line) });
  const text = "a\x1b[2J\u009b31m\r\nb\u2028c\u202ed\x07\u0085";
  world.log("error", text, { text });
  assertEquals(printed.length, 1);
  // deno-lint-ignore no-control-regex -- they are what is looked for
  assert(!/[\u0000-\u001f\u007f-\u009f\u2028-\u202e]/.test(printed[0]!), printed[0]);
  assert(printed[0]!.includes("a\\x1b[2J\\x9b31m ⏎ b\\u2028c\\u202ed\\x07\\x85 text="), printed[0]);
});
