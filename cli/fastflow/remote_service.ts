/** A dispatcher and its workers as processes, each worker with CPUs of its own if wanted. */
import { ChildProcess } from "../cluster/child_process.ts";

/** Where the processes run, and with what resources. */
export interface RemoteServiceOptions {
  /** The address they listen on. */
  readonly host: string;
  /** The dispatcher's port. Default: a free one. */
  readonly port?: number;
  /** The network namespace they run in. Default: this process's. */
  readonly namespace?: string;
  /** The folder that workers may read. */
  readonly dataRoot: string;
  /** Added to each open and read of a file on a worker. */
  readonly storageLatencyMs?: number | undefined;
  /** The CPUs of each worker, as `taskset -c` takes them. Default: one worker, on any CPU. */
  readonly workerCpus?: readonly (string | undefined)[];
  /** The CPUs of the dispatcher. Default: any. */
  readonly dispatcherCpus?: string | undefined;
}

/** A dispatcher and workers. Disposing it ends the processes. */
export class RemoteService implements AsyncDisposable {
  readonly #children: ChildProcess[] = [];
  #address = "";

  private constructor() {}

  /** The dispatcher's address. */
  get address(): string {
    return this.#address;
  }

  static async start(options: RemoteServiceOptions): Promise<RemoteService> {
    const service = new RemoteService();
    try {
      await service.#serve(options);
      return service;
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children.splice(0).toReversed()) await child.stop();
  }

  async #serve(options: RemoteServiceOptions): Promise<void> {
    const { host, port = 0, namespace, dataRoot, storageLatencyMs = 0 } = options;
    const { workerCpus = [undefined], dispatcherCpus } = options;
    const start = async (name: string, cpus: string | undefined, ...args: string[]) => {
      const given = { ...(namespace === undefined ? {} : { namespace }), cpus, onLog: () => {} };
      // Insecure, because only this machine can reach it.
      const all = ["--host", host, "--insecure", ...args];
      const child = await ChildProcess.start(name, `cli/${name}.ts`, all, given);
      this.#children.push(child);
      return child.address;
    };
    this.#address = await start("dispatcher", dispatcherCpus, "--port", `${port}`);
    // No slots: a real remote host has no files in common with the trainer.
    const worker = ["--dispatcher", this.#address, "--data-root", dataRoot, "--no-slots"];
    const latency = ["--storage-latency-ms", `${storageLatencyMs}`];
    await Promise.all(workerCpus.map((cpus) => start("worker", cpus, ...worker, ...latency)));
  }
}
