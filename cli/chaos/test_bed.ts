/** The environment of drills: a cluster of processes, a relay in front of each, folders, and logs. */
import { join } from "node:path";
import { Deployment, type DeploymentOptions } from "../cluster/deployment.ts";
import { WINDOW } from "./modes/deterministic.ts";
import { ProcessLogs } from "./process_logs.ts";
import { Relay } from "./relay.ts";
import type { ChaosScaling } from "./scaling.ts";

/** A cluster of processes with relays, a journal, a folder for saves, and logs. */
export class TestBed implements AsyncDisposable {
  readonly logs = new ProcessLogs();
  readonly relays = new Map<string, Relay>();
  /** The folder that workers may write to. */
  readonly folder: string;
  readonly deployment: Deployment;
  readonly #journal: string;
  /** Starts and drains workers, if scaling is on. */
  scaling: ChaosScaling | undefined;
  /** Whether to keep the logs. */
  keepsLogs = false;

  constructor(
    options: Pick<DeploymentOptions, "flags" | "onOutput" | "dispatcherArgs" | "drainMs"> = {},
  ) {
    this.#journal = Deno.makeTempDirSync({ prefix: "leat-chaos-" });
    this.folder = Deno.makeTempDirSync({ prefix: "leat-chaos-saved-" });
    this.deployment = new Deployment((line) => this.#log(line), {
      journal: join(this.#journal, "journal"),
      windowSplits: WINDOW.splits,
      logLevel: "info",
      workerArgs: ["--data-root", this.folder, "--allow-write", this.folder],
      frontOf: (name) => this.#relayOf(name),
      ...options,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.deployment.stop();
    for (const relay of this.relays.values()) relay[Symbol.dispose]();
    await this.logs.end(this.keepsLogs);
    for (const folder of [this.#journal, this.folder]) {
      await Deno.remove(folder, { recursive: true });
    }
  }

  #relayOf(name: string): Relay {
    return this.relays.getOrInsertComputed(name, () => new Relay());
  }

  #log(line: string): void {
    const separator = line.indexOf(": ");
    this.logs.write(line.slice(0, separator), line.slice(separator + 2));
  }
}
