/** What the checker of fenced references detects. */
import type { ActorInfo, Observer } from "../../../actors/runtime/inspection.ts";
import { FenceChecker } from "../../../sim/checkers/fences.ts";
import { assertEquals } from "../../assert.ts";

/**
 * Sends an actor a message, optionally restarts it, and delivers the message; returns the findings.
 */
function taken(incarnation: string | undefined, startsAgain: boolean): string[] {
  const found: string[] = [];
  const checker = new FenceChecker({ add: (what) => found.push(what) });
  const living = { node: "b", path: "/y", incarnation: "2-1" };
  const info: ActorInfo = { ref: living, kind: "y", state: "running", mailboxLength: 0 };
  const observers: Observer[] = [];
  checker.watch({
    actors: () => [info],
    inspect(observer) {
      observers.push(observer);
      return () => {};
    },
  });
  const envelope = {
    kind: "tell",
    source: { node: "a", path: "/x", incarnation: "1-1" },
    target: { node: "b", path: "/y", ...(incarnation === undefined ? {} : { incarnation }) },
    number: 1,
    method: "note",
    body: null,
  } as const;
  for (const observe of observers) {
    observe({ type: "send", envelope });
    if (startsAgain) observe({ type: "start", ref: { ...living, incarnation: "2-2" } });
    observe({ type: "deliver", envelope: { ...envelope, target: { node: "b", path: "/y" } } });
  }
  return found;
}

Deno.test("FenceChecker detects a message received by a later life of its target", () => {
  assertEquals(taken("2-1", true), ["b/y#2-2 took what a/x#1-1 had sent to #2-1"]);
});

Deno.test("FenceChecker accepts a message for this life, or for any life at the path", () => {
  assertEquals([taken("2-1", false), taken(undefined, true)], [[], []]);
});
