/** Whether foreign functions can run in confined processes here; the code is loaded when needed. */
import type {
  ForeignPart,
  ForeignRunner,
  ForeignRunners,
  OpenInput,
  RemoteElements,
  ServedElements,
} from "../../../data/foreign/foreign_runners.ts";
import type { SandboxOptions } from "../grants.ts";

/** The limits of such a process. The defaults are a worker's. */
export type ForeignLimits = Pick<
  SandboxOptions,
  "heapBytesMax" | "memoryBytesMax" | "stallTimeoutMs"
>;

/** Starts confined runners for functions from outside this program's build. */
export class ForeignProcesses implements ForeignRunners {
  readonly #limits: ForeignLimits;

  constructor(limits: ForeignLimits = {}) {
    this.#limits = limits;
  }

  get obstacle(): string | undefined {
    if (Deno.build.os !== "linux") {
      return `only the kernel of Linux keeps the limits of one, and this is ${Deno.build.os}`;
    }
    const mayRun = [Deno.execPath(), "deno"].some((command) =>
      Deno.permissions.querySync({ name: "run", command }).state === "granted"
    );
    return mayRun
      ? undefined
      : "this program lacks the permission to: run it with --allow-run=deno " +
        '(leat.load: allow=["run=deno"])';
  }

  start(): ForeignRunner {
    return new LateRunner(this.#limits);
  }
}

/** Loads the runner with its first part. */
class LateRunner implements ForeignRunner {
  readonly #limits: ForeignLimits;
  #loading: Promise<ForeignRunner> | undefined;
  #isClosed = false;

  constructor(limits: ForeignLimits) {
    this.#limits = limits;
  }

  async open(part: ForeignPart, openInput: OpenInput<ServedElements>): Promise<RemoteElements> {
    const runner = await (this.#loading ??= this.#load());
    return await runner.open(part, openInput);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#loading?.then((runner) => runner.close(), () => {});
  }

  async #load(): Promise<ForeignRunner> {
    const { ProcessRunner } = await import("./process_runner.ts");
    const runner = new ProcessRunner(this.#limits);
    if (this.#isClosed) runner.close();
    return runner;
  }
}
