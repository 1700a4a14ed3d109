/** What the checker of dying actors detects. */
import type { Observer } from "../../../actors/runtime/inspection.ts";
import { LeatError } from "../../../core/error.ts";
import { BugChecker } from "../../../sim/checkers/bugs.ts";
import { assertEquals } from "../../assert.ts";

/** Ends an actor, and returns the findings. */
function ended(error: LeatError | undefined, { hasFailed = false } = {}): string[] {
  const found: string[] = [];
  const observers: Observer[] = [];
  const inspect = (observer: Observer) => {
    observers.push(observer);
    return () => {};
  };
  new BugChecker({ add: (what) => found.push(what) })
    .watch({ system: { inspect }, disk: { hasFailed } });
  const ref = { node: "a", path: "/x", incarnation: "1-1" };
  for (const observe of observers) observe({ type: "stop", ref, error });
  return found;
}

Deno.test("BugChecker detects an actor that died of an error", () => {
  const error = new LeatError("unavailable", "why");
  assertEquals(ended(error), ["a/x#1-1 died: unavailable: why"]);
});

Deno.test("BugChecker accepts an actor that was stopped, or whose disk has failed", () => {
  const error = new LeatError("data_loss", "The disk cannot be written");
  assertEquals([ended(undefined), ended(error, { hasFailed: true })], [[], []]);
});

Deno.test("BugChecker detects a bug of an actor whose disk has failed", () => {
  const error = LeatError.from(new TypeError("a bug"), "internal");
  assertEquals(ended(error, { hasFailed: true }), ["a/x#1-1 died: internal: a bug"]);
});
