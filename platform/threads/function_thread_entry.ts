/** The program of a thread that calls functions of pipelines. */
import { parentPort } from "node:worker_threads";
import { CalledFunction } from "../../data/threads/called_function.ts";
import { packError } from "../../data/threads/packed_error.ts";
import { installHost } from "../../data/host.ts";
import { DenoHost } from "../deno_host.ts";
import { guardExits } from "./exit_guard.ts";
import type { ThreadAnswer, ThreadRequest } from "./function_thread.ts";

const host = new DenoHost({ threads: false });
const functions = new Map<number, Promise<CalledFunction>>();

async function answer(message: ThreadRequest, port: MessagePort): Promise<void> {
  if (message.kind === "forget") return void functions.delete(message.fn);
  const { request } = message;
  const buffers: ArrayBuffer[] = [];
  let answer: ThreadAnswer;
  try {
    answer = { request };
    if (message.kind === "load") {
      const loading = CalledFunction.load(message.of, host);
      functions.set(message.fn, loading);
      await loading;
    } else {
      const fn = await functions.get(message.fn)!;
      answer = { request, outcome: await fn.run(message.block, buffers) };
    }
  } catch (error) {
    answer = { request, error: packError(error) };
  }
  port.postMessage(answer, buffers);
}

guardExits((call) =>
  `A function of the pipeline called ${call}, which would end the thread that calls it: have it throw an error ` +
  "instead"
);
installHost(host);
parentPort!.once("message", (port: MessagePort) => {
  port.onmessage = ({ data }: MessageEvent<ThreadRequest>) => void answer(data, port);
});
