/** Wrapped runners do all that the runners in them do. */
import type { Runner, RunnerFactory } from "../../../actors/worker/runner/runner.ts";
import { RunnersAround } from "../../../sim/faults/runners_around.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("RunnersAround gives memory back to its runner", () => {
  const recycled: ArrayBuffer[] = [];
  const runner: Runner = {
    bytesRead: 0,
    next: () => Promise.resolve({ kind: "end" }),
    recycle: (buffer) => recycled.push(buffer),
    dispose: () => {},
  };
  const runners: RunnerFactory = {
    start: () => runner,
    listSplits: () => Promise.reject(new Error("not listed here")),
    close: () => Promise.resolve(),
  };
  const buffer = new ArrayBuffer(8);
  const settings = { graph: new Uint8Array(), seed: "0", epoch: 0, splits: true, shared: false };
  new RunnersAround(runners, (next) => next).start(settings, {} as never).recycle!(buffer);
  assertEquals(recycled, [buffer]);
});
