/**
 * The program of the thread that stands above a confined one. The permissions are this thread's,
 * because only a Web Worker can be given some; the limit of memory is the other's, because only a
 * thread of `node:worker_threads` can be given one. It runs nothing of a user.
 *
 * @module
 */
import { type Transferable, Worker as LimitedWorker } from "node:worker_threads";
import * as comlink from "comlink";
import type { ConfinedStart } from "./confined_thread.ts";

/** How a confined thread ended. */
export interface ThreadEnd {
  /** It ran out of memory, died of an error that nobody caught, or ended without either. */
  readonly why: "memory" | "error" | "exit";
  readonly message: string;
}

/** What a warden can be told, by the thread that started it alone. */
export class WardenControl {
  #thread: LimitedWorker | undefined;

  /** Starts a confined thread. Resolves when that has ended. */
  guard(start: ConfinedStart, heapBytesMax: number): Promise<ThreadEnd> {
    const thread = new LimitedWorker(new URL("./confined_thread.ts", import.meta.url), {
      workerData: start,
      // Node's types of a port are not the platform's.
      transferList: [start.control, start.host, start.life] as unknown as Transferable[],
      resourceLimits: { maxOldGenerationSizeMb: Math.floor(heapBytesMax / 2 ** 20) },
      env: {},
    });
    this.#thread = thread;
    return new Promise((resolve) => {
      thread.on("error", ({ code, message }: Error & { code?: string }) => {
        resolve({ why: code === "ERR_WORKER_OUT_OF_MEMORY" ? "memory" : "error", message });
      });
      thread.on("exit", () => resolve({ why: "exit", message: "" }));
    });
  }

  /** Ends the confined thread, whatever it is doing: it would outlive this one. */
  async stop(): Promise<void> {
    await this.#thread?.terminate();
  }
}

comlink.expose(new WardenControl());
