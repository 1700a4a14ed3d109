/**
 * A service on a host of its own: a Linux network namespace, behind a cable whose speed `tc` limits.
 * Needs `ip` and `tc` (iproute2) and the right to create namespaces.
 */
import { RemoteService, type RemoteServiceOptions } from "./remote_service.ts";

const TRAINER = "10.97.0.1";
const HOST = "10.97.0.2";
const PORT = 5_050;
const BITS_PER_BYTE = 8;
/** What a cable holds: more than a burst of the sender, less than a batch. */
const BURST = "64kb";
const QUEUE_MS = "50ms";

/** How the host is reached, and what it has. */
export interface RemoteHostOptions extends Omit<RemoteServiceOptions, "host" | "namespace"> {
  /** Speed of the cable in each direction. Left out: as fast as this machine copies. */
  readonly bytesPerSecond?: number;
}

/** A dispatcher and workers there. Disposing it ends them and removes the host. */
export class RemoteHost implements AsyncDisposable {
  readonly address = `ws://${HOST}:${PORT}`;
  readonly #namespace = `leat-fastflow-${Deno.pid}`;
  readonly #cable = `leat-${Deno.pid}`;
  #service: RemoteService | undefined;

  private constructor() {}

  /** Why there can be none here; undefined if there can. */
  static async whyNot(): Promise<string | undefined> {
    const host = new RemoteHost();
    try {
      await host.#connect(1_000_000);
      return undefined;
    } catch (error) {
      return (error as Error).message;
    } finally {
      await host[Symbol.asyncDispose]();
    }
  }

  static async start(options: RemoteHostOptions): Promise<RemoteHost> {
    const host = new RemoteHost();
    try {
      await host.#connect(options.bytesPerSecond);
      host.#service = await RemoteService.start({
        ...options,
        ...{ host: HOST, port: PORT, namespace: host.#namespace },
      });
      return host;
    } catch (error) {
      await host[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service?.[Symbol.asyncDispose]();
    // The system removes the cable of a namespace only later, and another host may need its name.
    await run("ip", "link", "del", this.#cable).catch(() => {});
    await run("ip", "netns", "del", this.#namespace).catch(() => {});
  }

  async #connect(bytesPerSecond: number | undefined): Promise<void> {
    const [namespace, cable] = [this.#namespace, this.#cable];
    await run("ip", "netns", "add", namespace);
    const there = ["peer", "name", "eth0", "netns", namespace];
    await run("ip", "link", "add", cable, "type", "veth", ...there);
    await run("ip", "addr", "add", `${TRAINER}/30`, "dev", cable);
    await run("ip", "link", "set", cable, "up");
    await run("ip", "-n", namespace, "addr", "add", `${HOST}/30`, "dev", "eth0");
    await run("ip", "-n", namespace, "link", "set", "eth0", "up");
    await run("ip", "-n", namespace, "link", "set", "lo", "up");
    if (bytesPerSecond === undefined) return;
    const rate = `${Math.round(BITS_PER_BYTE * bytesPerSecond)}bit`;
    const shape = ["root", "tbf", "rate", rate, "burst", BURST, "latency", QUEUE_MS];
    await run("tc", "qdisc", "add", "dev", cable, ...shape);
    await run("tc", "-n", namespace, "qdisc", "add", "dev", "eth0", ...shape);
  }
}

async function run(program: "ip" | "tc", ...args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(program, { args }).output();
  if (success) return;
  const complaint = new TextDecoder().decode(stderr).trim();
  throw new Error(`${program} ${args.join(" ")}: ${complaint}`);
}
