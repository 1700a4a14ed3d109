/** Parses addresses of nodes as users write them. */
import { LeatError } from "../../core/error.ts";
import { shownAddress } from "../../core/shown_text.ts";
import { advertisedHost } from "./advertised_host.ts";

/** The form of a service's address, for error messages. */
const FORM = "ws://host:port or wss://host:port (with TLS)";

/**
 * Normalizes the address of a service to the form of node names: scheme, host and port.
 * @param what Names the value in the error, such as `service`.
 * @throws LeatError `invalid_argument` for anything but `ws://host:port` and `wss://host:port`.
 */
export function serviceAddress(text: string, what: string): string {
  const address = addressOf(text);
  if (address !== undefined) return address;
  const shown = `"${shownAddress(String(text))}"`;
  throw new LeatError("invalid_argument", `${what} must be ${FORM}, got ${shown}`);
}

/**
 * Normalizes the addresses of services, from a list that also contains secrets. Each may occur once.
 * @param what Names the list in errors, such as `services`.
 * @throws LeatError `invalid_argument`. An invalid address is not shown: it may be a misplaced
 * secret.
 */
export function secretiveServices(texts: readonly string[], what: string): string[] {
  const spellings = new Map<string, string>();
  for (const [index, text] of texts.entries()) {
    const address = addressOf(text);
    if (address === undefined) {
      const position = `address ${index + 1} of ${texts.length}`;
      throw new LeatError(
        "invalid_argument",
        `${what}: ${position} must be ${FORM}; it is not shown, because it may be a secret`,
      );
    }
    const former = spellings.get(address);
    if (former !== undefined) {
      throw new LeatError(
        "invalid_argument",
        `${what}: "${former}" and "${text}" are one service, ${address}: leave one of them out`,
      );
    }
    spellings.set(address, text);
  }
  return [...spellings.keys()];
}

/** Whether others can dial a node by this name: the form of what {@linkcode advertisedAddress} returns. */
export function isNodeAddress(node: string): boolean {
  return /^wss?:\/\/[!-~]+$/.test(node) && !/[/\\?#@]/.test(node.slice("wss://".length)) &&
    addressOf(node) !== undefined;
}

function addressOf(text: string): string | undefined {
  const url = URL.parse(text);
  const isNode = url !== null && (url.protocol === "ws:" || url.protocol === "wss:") &&
    url.hostname !== "" && url.port !== "0" && (url.pathname === "" || url.pathname === "/") &&
    [url.username, url.password, url.search, url.hash].every((part) => part === "");
  return isNode ? `${url.protocol}//${url.host}` : undefined;
}

/** Removes the brackets that IPv6 addresses have in URLs: `[::1]` becomes `::1`. */
export function bareHost(host: string): string {
  return host.replace(/^\[(.*)\]$/, "$1");
}

/** Where a server listens. */
interface Listening {
  readonly scheme: "ws" | "wss";
  readonly hostname: string;
  readonly port: number;
}

/**
 * Returns the address at which others reach a server.
 * @param advertise A host, or `host:port` if the port differs too (behind a port mapping). Default:
 * the {@linkcode advertisedHost} and the server's own port.
 * @throws LeatError `invalid_argument` for an invalid host, or port 0, which cannot be dialled.
 */
export function advertisedAddress(listening: Listening, advertise?: string): string {
  const { scheme, hostname, port } = listening;
  if (advertise === undefined) return `${scheme}://${advertisedHost(hostname)}:${port}`;
  // Not parsed by `URL`, which omits the port if it is the scheme's default.
  const [, host = "", givenPort] = /^(\[[^\]]*\]|[^:[\]/]+)(?::(\d{1,5}))?$/.exec(advertise) ?? [];
  const address = `${scheme}://${host}:${givenPort ?? port}`;
  const isWildcard = host === "0.0.0.0" || host === "[::]";
  // The port may be 0 here, before the listener has one.
  const isHost = isNodeAddress(`${scheme}://${host}:1`);
  if (!isHost || isWildcard || URL.parse(address) === null) {
    throw new LeatError(
      "invalid_argument",
      `advertise must be a name or address at which others reach this host, alone or with a port ` +
        `(host, host:port, [IPv6]:port), got "${advertise}"`,
    );
  }
  if (givenPort !== undefined && Number(givenPort) === 0) {
    throw new LeatError(
      "invalid_argument",
      `advertise is "${advertise}", but nobody can dial port 0: name the port at which others reach ` +
        `this host, or the host alone (${host}) for the one that it listens on`,
    );
  }
  return address;
}
