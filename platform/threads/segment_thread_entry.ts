/** The program of a thread that runs segments of pipelines. */
import { parentPort } from "node:worker_threads";
import { LeatError } from "../../core/error.ts";
import "../../data/dataset.ts"; // registers all operators
import { installHost } from "../../data/host.ts";
import { packError } from "../../data/threads/packed_error.ts";
import type { SegmentAnswer } from "../../data/threads/function_threads.ts";
import { ServedSegment } from "../../data/threads/served_segment.ts";
import { DenoHost } from "../deno_host.ts";
import { guardExits } from "./exit_guard.ts";
import type { Reply } from "./asked_thread.ts";
import type { SegmentMessage } from "./segment_thread.ts";

/** By the interpreter of Python functions. They stay, because each has processes of its own. */
const hosts = new Map<string | false, DenoHost>();
let segment: ServedSegment | undefined;
/** The numbers of the messages without a reply. */
const open = new Set<number>();

async function reply(
  message: Exclude<SegmentMessage, { close: true }>,
  buffers: ArrayBuffer[],
): Promise<Reply<SegmentAnswer>> {
  const { number } = message;
  try {
    if ("request" in message) {
      return { number, answer: await segment!.answer(message.request, buffers) };
    }
    const { python } = message;
    const host = hosts.getOrInsertComputed(python, () => new DenoHost({ threads: false, python }));
    installHost(host);
    segment = new ServedSegment(message.segment, host);
    return { number };
  } catch (error) {
    return { number, error: packError(error) };
  }
}

guardExits((call) =>
  `Code of the pipeline called ${call}, which would end its thread: throw an error instead`
);
parentPort!.once("message", (port: MessagePort) => {
  port.onmessage = async ({ data }: MessageEvent<SegmentMessage>) => {
    if ("close" in data) {
      segment?.dispose();
      segment = undefined;
      // What they wait for may never come, and the program does not end while they wait.
      const error = packError(new LeatError("cancelled", "The iterator was disposed"));
      for (const number of open) port.postMessage({ number, error });
      open.clear();
      return;
    }
    open.add(data.number);
    const buffers: ArrayBuffer[] = [];
    const answer = await reply(data, buffers);
    if (open.delete(data.number)) port.postMessage(answer, buffers);
  };
});
