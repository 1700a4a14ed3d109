/** The name by which other hosts reach this one. */
import { bracketed } from "../../transport/connectors.ts";

/** The properties of a network interface that matter here. */
export type HostInterface = Pick<Deno.NetworkInterfaceInfo, "name" | "family" | "address">;

/** Interfaces of containers and virtual machines on this host. Other hosts cannot reach them. */
const VIRTUAL = /^(docker|br-|veth|virbr|vmnet|vboxnet|cni|flannel|utun|podman)/;

/**
 * The host to name in this node's URL: the address it listens on, or, if it listens on all
 * interfaces, an address that other hosts can reach: for `0.0.0.0` an IPv4 one. Real interfaces are
 * preferred to virtual ones, and IPv4 to IPv6 among either. Without any such address it is
 * `127.0.0.1`.
 * @param hostname The address that the server listens on.
 * @param interfaces Default: this host's, as far as the process may read them (`--allow-sys`).
 */
export function advertisedHost(
  hostname: string,
  interfaces: readonly HostInterface[] = hostInterfaces(),
): string {
  if (hostname !== "0.0.0.0" && hostname !== "::") return bracketed(hostname);
  const reachable = interfaces
    .filter(({ family }) => hostname === "::" || family === "IPv4")
    .filter(isReachable)
    .sort((a, b) => rank(a) - rank(b));
  return bracketed(reachable[0]?.address ?? "127.0.0.1");
}

function hostInterfaces(): readonly HostInterface[] {
  try {
    return Deno.networkInterfaces();
  } catch {
    return [];
  }
}

/** Other hosts cannot reach loopback and link-local addresses. */
function isReachable({ family, address }: HostInterface): boolean {
  return family === "IPv4"
    ? !/^(127|169\.254)\./.test(address)
    : address !== "::1" && !/^fe[89ab]/i.test(address);
}

function rank({ name, family }: HostInterface): number {
  return (VIRTUAL.test(name) ? 2 : 0) + (family === "IPv4" ? 0 : 1);
}
