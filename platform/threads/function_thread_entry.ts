/** The program of a thread that calls functions of pipelines. */
import { parentPort } from "node:worker_threads";
import { LeatError } from "../../core/error.ts";
import { CalledFunction } from "../../data/threads/called_function.ts";
import type { BlockOutcome } from "../../data/threads/function_threads.ts";
import { packError } from "../../data/threads/packed_error.ts";
import { installHost } from "../../data/host.ts";
import { DenoHost } from "../deno_host.ts";
import { guardExits } from "./exit_guard.ts";
import type { Reply } from "./asked_thread.ts";
import type { ThreadRequest } from "./function_thread.ts";

const host = new DenoHost({ threads: false });
const functions = new Map<number, Promise<CalledFunction>>();
/** The functions of the messages without a reply, by the number of the message. */
const open = new Map<number, number>();

async function reply(
  message: Exclude<ThreadRequest, { kind: "forget" }>,
  buffers: ArrayBuffer[],
): Promise<Reply<BlockOutcome>> {
  const { number } = message;
  try {
    if (message.kind === "run") {
      const fn = await functions.get(message.fn)!;
      return { number, answer: await fn.run(message.block, buffers) };
    }
    const loading = CalledFunction.load(message.of, host);
    functions.set(message.fn, loading);
    await loading;
    return { number };
  } catch (error) {
    return { number, error: packError(error) };
  }
}

guardExits((call) =>
  `A function of the pipeline called ${call}, which would end its thread: throw an error instead`
);

/** Unloads a function. What its calls wait for may never come, and the program would wait for them. */
function forget(fn: number, port: MessagePort): void {
  functions.delete(fn);
  const error = packError(new LeatError("cancelled", "The iterator was disposed"));
  for (const [number, of] of open) {
    if (of === fn && open.delete(number)) port.postMessage({ number, error });
  }
}

installHost(host);
parentPort!.once("message", (port: MessagePort) => {
  port.onmessage = async ({ data }: MessageEvent<ThreadRequest>) => {
    if (data.kind === "forget") return forget(data.fn, port);
    open.set(data.number, data.fn);
    const buffers: ArrayBuffer[] = [];
    const answer = await reply(data, buffers);
    if (open.delete(data.number)) port.postMessage(answer, buffers);
  };
});
