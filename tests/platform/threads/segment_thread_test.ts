/** A segment of a pipeline and the thread that it shares with later ones. */
import { LeatError } from "../../../core/error.ts";
import type { Segment } from "../../../data/threads/function_threads.ts";
import { openSegment, type SegmentThread } from "../../../platform/threads/segment_thread.ts";
import { assertEquals, assertRejects } from "../../assert.ts";

/** A thread that notes the kinds of its messages and answers at once. */
function notingThread(heard: string[]): SegmentThread {
  const thread: Pick<SegmentThread, "ask" | "tell"> = {
    ask(message) {
      heard.push("request" in message ? "request" : "open");
      return Promise.resolve({ stats: [] });
    },
    tell: () => void heard.push("close"),
  };
  return thread as SegmentThread;
}

Deno.test("a closed segment asks nothing of the segment that its thread runs next", async () => {
  const heard: string[] = [];
  const thread = notingThread(heard);
  const start = { segment: {} as Segment, python: false } as const;
  const closed = await openSegment(thread, start, () => {});
  closed.close();
  const next = await openSegment(thread, start, () => {});
  const error = await assertRejects(() => closed.ask({ kind: "save" }), LeatError, "disposed");
  assertEquals(error.code, "cancelled");
  assertEquals(await next.ask({ kind: "save" }), { stats: [] });
  assertEquals(heard, ["open", "close", "open", "request"]);
});
