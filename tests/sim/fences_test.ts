/** What the checker of fenced references sees. */
import type { ActorInfo, Observer } from "../../actors/runtime/inspection.ts";
import { FenceChecker } from "../../sim/checkers/fences.ts";
import { assertEquals } from "../assert.ts";

/** What is found when an actor is sent a message, starts again or not, and takes it. */
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

Deno.test("FenceChecker sees a message that is taken by the next life of whom it was meant for", () => {
  assertEquals(taken("2-1", true), ["b/y#2-2 took what a/x#1-1 had sent to #2-1"]);
});

Deno.test("FenceChecker lets a life take what was meant for it, or for whoever lives there", () => {
  assertEquals([taken("2-1", false), taken(undefined, true)], [[], []]);
});
