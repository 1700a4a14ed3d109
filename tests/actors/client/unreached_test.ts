/** Reports of a worker that no iterator of a process can reach. */
import { warnUnreached } from "../../../actors/client/unreached.ts";
import type { Timer, World } from "../../../actors/runtime/world.ts";
import { assertEquals, assertMatch } from "../../assert.ts";

/** A world with a manual clock, and its log. */
class Quiet {
  nowMs = 0;
  readonly lines: string[] = [];
  readonly timers: (() => void)[] = [];
  readonly world = {
    nowMs: () => this.nowMs,
    log: (_level: string, line: string) => this.lines.push(line),
  } as unknown as World;

  say(key: string): void {
    const timer = (_delayMs: number, fn: () => void): Timer => {
      this.timers.push(fn);
      return { cancel: () => {} };
    };
    warnUnreached(this.world, timer, { key, message: `Cannot read from ${key}` });
  }
}

Deno.test("warnUnreached reports a worker once for all iterators, then how many more there were", () => {
  const quiet = new Quiet();
  for (let i = 0; i < 50; i++) quiet.say("worker w1");
  quiet.say("worker w2");
  assertEquals(quiet.lines, ["Cannot read from worker w1", "Cannot read from worker w2"]);
  quiet.nowMs = 60_000;
  for (const fire of quiet.timers) fire();
  assertEquals(quiet.lines.length, 3);
  assertMatch(quiet.lines[2]!, /^49 more iterators .* worker w1$/);
  // A new span, and another process.
  quiet.say("worker w1");
  assertEquals(quiet.lines.length, 4);
  const other = new Quiet();
  other.say("worker w1");
  assertEquals(other.lines.length, 1);
});

Deno.test("warnUnreached reports a left-over count with the next iterator", () => {
  const quiet = new Quiet();
  quiet.say("worker w1");
  quiet.say("worker w1");
  quiet.nowMs = 90_000; // the first has ended, and its timer with it
  quiet.say("worker w1");
  assertEquals(quiet.lines.length, 3);
  assertMatch(quiet.lines[1]!, /^1 more iterator of this process could not read from worker w1$/);
  for (const fire of quiet.timers) fire();
  assertEquals(quiet.lines.length, 3); // not told twice
});

Deno.test("warnUnreached forgets a worker once it stops counting", () => {
  const quiet = new Quiet();
  quiet.say("worker w1");
  quiet.say("worker w1");
  quiet.nowMs = 90_000;
  // Workers with different names come and go: what is kept of one ends with it.
  quiet.say("worker w2");
  assertEquals(quiet.lines.length, 3);
  assertMatch(quiet.lines[1]!, /^1 more iterator .* worker w1$/);
  assertEquals(quiet.lines[2], "Cannot read from worker w2");
});
