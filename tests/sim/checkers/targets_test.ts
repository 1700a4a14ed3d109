/** What the checker of workers' readers detects. */
import type { InspectionEvent } from "../../../actors/runtime/inspection.ts";
import { TargetsChecker } from "../../../sim/checkers/targets.ts";
import { assertEquals } from "../../assert.ts";

/** Two clients of a job that wants a tag; `plain` lacks it, and `foreign` is in another process. */
function findings(use: (checker: TargetsChecker) => void): string[] {
  const found: string[] = [];
  const checker = new TargetsChecker({ add: (what) => found.push(what) }, ["quick"], ["a", "b"]);
  checker.worker("open", { tags: ["quick"] });
  checker.worker("plain", { tags: [] });
  checker.worker("own", { tags: ["quick"], process: "a", isPrivate: true });
  checker.worker("foreign", { tags: ["quick"], process: "c", isPrivate: true });
  use(checker);
  return found;
}

function given(worker: string): InspectionEvent {
  const source = { node: worker, path: "/worker/task", incarnation: "2-1" };
  return {
    type: "deliver",
    envelope: {
      kind: "reply",
      source: { node: "dispatcher", path: "/dispatcher", incarnation: "1-1" },
      target: { node: "client", path: "/client", incarnation: "3-1" },
      number: 1,
      id: 1,
      body: { kind: "whole", tasks: [{ taskId: 1, worker, source }] },
    },
  };
}

Deno.test("TargetsChecker detects a task of a worker that no client may read", () => {
  const found = findings((checker) => {
    for (const worker of ["open", "plain", "own", "foreign"]) {
      checker.journaled({ type: "task_created", taskId: 1, iterationId: 1, worker, seed: "0" });
    }
  });
  assertEquals(found, [
    "plain was given a task, though no client may read it",
    "foreign was given a task, though no client may read it",
  ]);
});

Deno.test("TargetsChecker detects a task that a client of another process was given", () => {
  const found = findings((checker) => {
    for (const process of ["a", "b"]) {
      for (const worker of ["open", "own"]) checker.client(process)(given(worker));
    }
  });
  assertEquals(found, ["a client of process b was given a task of own"]);
});
