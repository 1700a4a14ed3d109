/**
 * Hosts on this machine with a network of their own: Linux namespaces, joined by cables that lose,
 * delay and can be cut. Needs `ip` and `tc` (iproute2) and the right to create namespaces.
 */

/** The hosts by name, and their addresses. */
export const HOSTS = {
  dispatcher: "10.77.0.1",
  worker1: "10.77.0.2",
  worker2: "10.77.0.3",
  trainer: "10.77.0.4",
} as const;

/** One of them. */
export type HostName = keyof typeof HOSTS;

const NAMES = Object.keys(HOSTS) as HostName[];

/**
 * The impairment of a cable: without netem in the kernel, a short and slow queue causes delay and
 * loss.
 */
const IMPAIRMENTS = {
  netem: ["netem", "delay", "3ms", "1ms", "loss", "1%"],
  tbf: ["tbf", "rate", "40mbit", "burst", "3000", "limit", "9000"],
};

let networks = 0;

/** Why no network can be created here; `undefined` if it can. */
export async function whyNoNetwork(): Promise<string | undefined> {
  const probe = `leat-${Deno.pid}-probe`;
  try {
    await ip("netns", "add", probe);
    await ip("netns", "del", probe);
    await run("tc", "-V");
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Four hosts on one switch. Disposing it removes everything. */
export class Network implements AsyncDisposable {
  /** How cables lose and delay. */
  readonly impairment: keyof typeof IMPAIRMENTS;
  readonly #prefix: string;

  private constructor(prefix: string, impairment: keyof typeof IMPAIRMENTS) {
    this.#prefix = prefix;
    this.impairment = impairment;
  }

  /** Builds it. */
  static async start(): Promise<Network> {
    const prefix = `leat-${Deno.pid}-${++networks}`;
    const network = new Network(prefix, await isThere("netem") ? "netem" : "tbf");
    try {
      await network.#build();
      return network;
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The namespace of a host. */
  namespaceOf(host: HostName): string {
    return `${this.#prefix}-${host}`;
  }

  /** Pulls a host's cable. */
  async cut(host: HostName): Promise<void> {
    await ip("-n", this.#switch, "link", "set", host, "down");
  }

  /** Plugs it in again. */
  async join(host: HostName): Promise<void> {
    await ip("-n", this.#switch, "link", "set", host, "up");
  }

  /** How many packets the cables have lost. */
  async lost(): Promise<number> {
    const text = await run("tc", "-s", "-n", this.#switch, "qdisc", "show");
    return [...text.matchAll(/dropped (\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const namespace of [this.#switch, ...NAMES.map((name) => this.namespaceOf(name))]) {
      await ip("netns", "del", namespace).catch(() => {});
    }
  }

  get #switch(): string {
    return `${this.#prefix}-switch`;
  }

  async #build(): Promise<void> {
    const hub = this.#switch;
    await ip("netns", "add", hub);
    await ip("-n", hub, "link", "add", "bridge", "type", "bridge");
    await ip("-n", hub, "link", "set", "bridge", "up");
    for (const host of NAMES) {
      const namespace = this.namespaceOf(host);
      await ip("netns", "add", namespace);
      const cable = ["link", "add", "eth0", "type", "veth", "peer", "name", host, "netns", hub];
      await ip("-n", namespace, ...cable);
      await ip("-n", namespace, "addr", "add", `${HOSTS[host]}/24`, "dev", "eth0");
      await ip("-n", namespace, "link", "set", "lo", "up");
      await ip("-n", namespace, "link", "set", "eth0", "up");
      await ip("-n", hub, "link", "set", host, "master", "bridge", "up");
      // On the switch: a host waits while its own queue is full, and loses nothing.
      const impairment = IMPAIRMENTS[this.impairment];
      await run("tc", "-n", hub, "qdisc", "add", "dev", host, "root", ...impairment);
    }
  }
}

/** Whether the kernel has a kind of queue. */
async function isThere(kind: "netem"): Promise<boolean> {
  const probe = `leat-${Deno.pid}-probe`;
  await ip("netns", "add", probe);
  try {
    await run("tc", "-n", probe, "qdisc", "add", "dev", "lo", "root", kind);
    return true;
  } catch {
    return false;
  } finally {
    await ip("netns", "del", probe);
  }
}

function ip(...args: string[]): Promise<string> {
  return run("ip", ...args);
}

async function run(program: string, ...args: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program, { args }).output();
  const [said, complaint] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes).trim());
  if (!success) throw new Error(`${program} ${args.join(" ")}: ${complaint}`);
  return said!;
}
