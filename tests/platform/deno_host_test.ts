/** The host on Deno: clock, timers, yielding, entropy, modules. */

import { assert, assertEquals, assertNotEquals, assertRejects } from "../assert.ts";
import { DenoHost } from "../../platform/deno_host.ts";

Deno.test("DenoHost.nowMs never goes back", () => {
  const host = new DenoHost();
  let last = host.nowMs();
  for (let i = 0; i < 1000; i++) {
    const now = host.nowMs();
    assert(now >= last);
    last = now;
  }
});

Deno.test("DenoHost.yield lets timers and file reads run in between", async () => {
  const host = new DenoHost();
  let timers = 0, reads = 0;
  const timer = setInterval(() => timers++, 1);
  const reading = (async () => {
    while (reads < 5) {
      await Deno.stat(".");
      reads++;
    }
  })();
  // Loops until both happen; a yield that starves the event loop would never end.
  while (timers < 5 || reads < 5) {
    await host.yield();
    const until = host.nowMs() + 1;
    while (host.nowMs() < until);
  }
  clearInterval(timer);
  await reading;
});

Deno.test("DenoHost.yield is a macrotask: pending promise callbacks run before it", async () => {
  const order: string[] = [];
  const turn = new DenoHost().yield().then(() => order.push("yield"));
  await Promise.resolve().then(() => Promise.resolve()).then(() => order.push("promise"));
  await turn;
  assertEquals(order, ["promise", "yield"]);
});

Deno.test("DenoHost.sleep ends by itself or with the reason of its signal", async () => {
  const host = new DenoHost();
  await host.sleep(1);
  const controller = new AbortController();
  const long = host.sleep(1e6, controller.signal);
  const reason = new Error("enough");
  controller.abort(reason);
  for (const sleeping of [long, host.sleep(1e6, controller.signal)]) {
    const error = await assertRejects(() => sleeping, Error);
    assertEquals(error, reason);
  }
});

Deno.test("DenoHost.sleep leaves no listener on its signal", async () => {
  let listeners = 0;
  class CountingTarget extends EventTarget {
    override addEventListener(...args: Parameters<EventTarget["addEventListener"]>): void {
      listeners++;
      super.addEventListener(...args);
    }
    override removeEventListener(...args: Parameters<EventTarget["removeEventListener"]>): void {
      listeners--;
      super.removeEventListener(...args);
    }
    throwIfAborted(): void {}
  }
  await new DenoHost().sleep(1, new CountingTarget() as unknown as AbortSignal);
  assertEquals(listeners, 0);
});

Deno.test("DenoHost.entropy64 draws 64 bits", () => {
  const host = new DenoHost();
  const draws = Array.from({ length: 64 }, () => host.entropy64());
  assertNotEquals(draws[0], draws[1]);
  assert(draws.every((draw) => draw >= 0n && draw < 2n ** 64n));
  assert(draws.some((draw) => draw >= 2n ** 63n) && draws.some((draw) => draw < 2n ** 63n));
});

Deno.test("DenoHost.importModule imports a module by URL", async () => {
  const module = await new DenoHost().importModule("data:text/javascript,export const x = 7");
  assertEquals(module.x, 7);
  await assertRejects(() => new DenoHost().importModule(import.meta.resolve("./no_such.ts")));
});
