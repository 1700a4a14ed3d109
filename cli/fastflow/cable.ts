/**
 * A cable (a veth pair) between this process and a Linux network namespace. `tc` limits its speed. It
 * needs `ip` and `tc` (iproute2) and the right to create namespaces.
 */

import { startDespiteLoader } from "../../platform/process/loader_variables.ts";
import { outputOf } from "../../platform/process/output_of.ts";

const BITS_PER_BYTE = 8;
/** How much data may pass at full speed: more than a burst of the sender, less than a batch. */
const BURST = "64kb";
const QUEUE_MS = "50ms";

/** The addresses of the two ends, and the speed. */
export interface CableOptions {
  /** The addresses of this end and of the end in the namespace, in one /30 network. */
  readonly here: string;
  readonly there: string;
  /** Speed in each direction. Default: as fast as this machine copies. */
  readonly bytesPerSecond?: number | undefined;
}

/**
 * A cable and its namespace. Disposing it removes both, as does the end of an interrupted program. A
 * process has at most one at a time.
 */
export class Cable implements AsyncDisposable {
  /** The namespace at the other end. */
  readonly namespace = `leat-fastflow-${Deno.pid}`;
  /** The network device at this end. */
  readonly device = `leat-${Deno.pid}`;

  private constructor() {}

  static async start(options: CableOptions): Promise<Cable> {
    const cable = new Cable();
    addEventListener("unload", cable.#removeNow);
    try {
      await cable.#connect(options);
      return cable;
    } catch (error) {
      await cable[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const args of this.#removing) await run("ip", ...args).catch(() => {});
    removeEventListener("unload", this.#removeNow);
  }

  /**
   * Deleting the namespace alone would remove the device only later, but the next cable may need its
   * name at once.
   */
  get #removing(): readonly string[][] {
    return [["link", "del", this.device], ["netns", "del", this.namespace]];
  }

  /** A program that exits disposes nothing, and cannot wait. */
  readonly #removeNow = () => {
    for (const args of this.#removing) {
      startDespiteLoader((env) => new Deno.Command("ip", { args, env }).outputSync());
    }
  };

  async #connect({ here, there, bytesPerSecond }: CableOptions): Promise<void> {
    const { namespace, device } = this;
    await run("ip", "netns", "add", namespace);
    const peer = ["peer", "name", "eth0", "netns", namespace];
    await run("ip", "link", "add", device, "type", "veth", ...peer);
    await run("ip", "addr", "add", `${here}/30`, "dev", device);
    await run("ip", "link", "set", device, "up");
    await run("ip", "-n", namespace, "addr", "add", `${there}/30`, "dev", "eth0");
    await run("ip", "-n", namespace, "link", "set", "eth0", "up");
    await run("ip", "-n", namespace, "link", "set", "lo", "up");
    if (bytesPerSecond === undefined) return;
    const rate = `${Math.round(BITS_PER_BYTE * bytesPerSecond)}bit`;
    const shape = ["root", "tbf", "rate", rate, "burst", BURST, "latency", QUEUE_MS];
    await run("tc", "qdisc", "add", "dev", device, ...shape);
    await run("tc", "-n", namespace, "qdisc", "add", "dev", "eth0", ...shape);
  }
}

async function run(program: "ip" | "tc", ...args: string[]): Promise<void> {
  const { success, stderr } = await outputOf(program, { args });
  if (success) return;
  const message = new TextDecoder().decode(stderr).trim();
  throw new Error(`${program} ${args.join(" ")}: ${message}`);
}
