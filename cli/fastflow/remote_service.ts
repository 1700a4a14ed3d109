/** Runs a dispatcher and its workers as processes, which can be pinned to CPUs. */
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
  /** Time that is added to each open and read of a file on a worker, in ms. Default: 0. */
  readonly storageLatencyMs?: number | undefined;
  /** The CPUs of each worker, in the format of `taskset -c`. Default: one worker, on any CPU. */
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
      const placement = namespace === undefined ? { cpus } : { cpus, namespace };
      // Insecure, because only this machine can reach it.
      const allArgs = ["--host", host, "--insecure", ...args];
      const processOptions = { ...placement, onLog: () => {} };
      const child = await ChildProcess.start(name, `cli/${name}.ts`, allArgs, processOptions);
      this.#children.push(child);
      return child.address;
    };
    this.#address = await start("dispatcher", dispatcherCpus, "--port", `${port}`);
    // No slots, because a real remote host shares no files with the trainer.
    const worker = ["--dispatcher", this.#address, "--data-root", dataRoot, "--no-slots"];
    const latency = ["--storage-latency-ms", `${storageLatencyMs}`];
    await Promise.all(workerCpus.map((cpus) => start("worker", cpus, ...worker, ...latency)));
  }
}
