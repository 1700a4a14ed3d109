/** Threads that run segments of pipelines, one after the other. */
import { LeatError } from "../../core/error.ts";
import type {
  OpenSegment,
  Segment,
  SegmentAnswer,
  SegmentRequest,
} from "../../data/threads/function_threads.ts";
import { AskedThread } from "./asked_thread.ts";

/** A segment, and the interpreter of its Python functions; false refuses them. */
export interface StartSegment {
  readonly segment: Segment;
  readonly python: string | false;
}

/** A message to the thread: a segment, a request to it, or its end, which is not answered. */
export type SegmentMessage =
  | { readonly number: number } & StartSegment
  | { readonly number: number; readonly request: SegmentRequest }
  | { readonly close: true };

export type SegmentThread = AskedThread<SegmentAnswer>;

export function startSegmentThread(onEnded: () => void): SegmentThread {
  const entry = new URL("./segment_thread_entry.ts", import.meta.url);
  return new AskedThread(entry, { name: "leat-segment", what: "The thread of prefetch", onEnded });
}

/** Starts a segment. `onClosed` is called when the thread is free for another one. */
export async function openSegment(
  thread: SegmentThread,
  start: StartSegment,
  onClosed: () => void,
): Promise<OpenSegment> {
  try {
    await thread.ask(start);
  } catch (error) {
    onClosed();
    throw error;
  }
  let isOpen = true;
  return {
    ask: async (request) => {
      // The thread may run another segment by now, which would answer.
      if (!isOpen) throw new LeatError("cancelled", "The iterator was disposed");
      return (await thread.ask({ request }))!;
    },
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      thread.tell({ close: true } satisfies SegmentMessage);
      // Until it answers, a function occupies it: the next segment would wait, perhaps for ever.
      if (thread.outstanding > 0) thread.settled().then(onClosed);
      else onClosed();
    },
  };
}
