/** The environment of drills: a cluster of processes, a relay in front of each, folders, and logs. */
import { join } from "node:path";
import type { Violations } from "../../sim/checkers/checker.ts";
import { Deployment, type DeploymentOptions } from "../cluster/deployment.ts";
import { WINDOW } from "./modes/deterministic.ts";
import { ProcessLogs } from "./process_logs.ts";
import { Relay } from "./relay.ts";
import type { ChaosScaling } from "./scaling.ts";
import { EXIT_FAILURE } from "../lib/args.ts";
import { counted } from "../lib/counted.ts";
import { makeTemporaryFolder } from "../lib/folders.ts";

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
  #keepsLogs = false;

  constructor(
    options: Pick<DeploymentOptions, "flags" | "onOutput" | "dispatcherArgs" | "drainMs"> = {},
  ) {
    this.#journal = makeTemporaryFolder("leat-chaos-");
    this.folder = makeTemporaryFolder("leat-chaos-saved-");
    this.deployment = new Deployment((line) => this.#log(line), {
      journal: join(this.#journal, "journal"),
      windowSplits: WINDOW.splits,
      logLevel: "info",
      workerArgs: ["--data-root", this.folder, "--allow-write", this.folder],
      frontOf: (name) => this.#relayOf(name),
      ...options,
    });
  }

  /**
   * Ends the cluster after an interruption. Keeps the logs if promises were broken. Returns the last
   * line of the program.
   * @param done What was done until then.
   */
  async interrupted(done: string, violations: Violations): Promise<string> {
    // Read before the end of the processes, which the checkers notice, too.
    const { count } = violations;
    if (count === 0) {
      await this[Symbol.asyncDispose]();
      return `Interrupted after ${done}; no promise was broken so far`;
    }
    const found = violations.list().join("; ");
    const logs = await this.#endWithLogs();
    return `Interrupted after ${done}; promises were broken ${
      counted(count, "time")
    } (${found}); ${logs}`;
  }

  /** Ends the cluster and this program, because promises were broken. Keeps the logs. */
  async fail(what: string): Promise<never> {
    console.error(`${what}; ${await this.#endWithLogs()}`);
    // The loops of a run that hangs would keep this process alive.
    Deno.exit(EXIT_FAILURE);
  }

  async #endWithLogs(): Promise<string> {
    this.#keepsLogs = true;
    await this[Symbol.asyncDispose]();
    return `logs of the processes: ${this.logs.folder}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.deployment.stop();
    for (const relay of this.relays.values()) relay[Symbol.dispose]();
    await this.logs.end(this.#keepsLogs);
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
