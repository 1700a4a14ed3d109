/**
 * Addresses of nodes as people write them.
 *
 * @module
 */
import { LeatError } from "../core/error.ts";
import { advertisedHost } from "./advertised_host.ts";

/**
 * The address of a service in the form in which nodes are named: scheme, host and port.
 *
 * @param what Names the value in the error, such as `service`.
 * @throws LeatError `invalid_argument` for anything but `ws://host:port` and `wss://host:port`.
 *
 * @example
 * ```ts
 * import { serviceAddress } from "./service_address.ts";
 *
 * serviceAddress("ws://10.0.0.5:5050/", "service"); // ws://10.0.0.5:5050
 * ```
 */
export function serviceAddress(text: string, what: string): string {
  const url = URL.parse(text);
  const isNode = url !== null && (url.protocol === "ws:" || url.protocol === "wss:") &&
    url.hostname !== "" && url.username === "" && (url.pathname === "" || url.pathname === "/");
  if (!isNode) {
    throw new LeatError(
      "invalid_argument",
      `${what} must be ws://host:port or wss://host:port (with TLS), got "${text}"`,
    );
  }
  return `${url.protocol}//${url.host}`;
}

/** A host without the brackets in which URLs have IPv6 addresses: `[::1]` is `::1`. */
export function bareHost(host: string): string {
  return host.replace(/^\[(.*)\]$/, "$1");
}

/** Where a server listens. */
export interface Listening {
  readonly scheme: "ws" | "wss";
  /** The interface. */
  readonly hostname: string;
  readonly port: number;
}

/**
 * The address under which others are to reach a server.
 *
 * @param advertise A host, or `host:port` where the port differs too (behind a port mapping).
 * Default: see {@linkcode advertisedHost}, and the server's own port.
 * @throws LeatError `invalid_argument` when that is no host.
 */
export function advertisedAddress(listening: Listening, advertise?: string): string {
  const { scheme, hostname, port } = listening;
  if (advertise === undefined) return `${scheme}://${advertisedHost(hostname)}:${port}`;
  // The port cannot be asked of the URL: it is silent about the scheme's default one.
  const [, host = "", given] = /^(\[[^\]]*\]|[^:[\]/]+)(?::(\d{1,5}))?$/.exec(advertise) ?? [];
  const address = `${scheme}://${host}:${given ?? port}`;
  const isWildcard = host === "0.0.0.0" || host === "[::]";
  if (host === "" || isWildcard || URL.parse(address) === null) {
    throw new LeatError(
      "invalid_argument",
      `advertise must be a name or address at which others reach this host, alone or with a port ` +
        `(host, host:port, [IPv6]:port), got "${advertise}"`,
    );
  }
  return address;
}

/** Whether an address or host leads to the very machine that uses it. */
export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" ||
    /^127(\.\d{1,3}){3}$/.test(host);
}
