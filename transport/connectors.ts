/** Connectors composed of others, and the names that they dial. */
import { type Connector, unknownNode } from "../actors/runtime/link.ts";
import { LeatError } from "../core/error.ts";

/** Whether a node's name is an address, as of a node that listens. */
export function isAddress(node: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(node);
}

/** A host as URLs and Deno's flags have it: an IPv6 address in brackets. */
export function bracketed(hostname: string): string {
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}

/** Chooses a connector by the scheme of the node's name; other names go to `otherwise`. */
export function connectorByScheme(
  schemes: Readonly<Record<string, Connector>>,
  otherwise?: Connector,
): Connector {
  return {
    connect(node, local, signal) {
      const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//.exec(node) ?? [];
      const connector = scheme !== undefined && Object.hasOwn(schemes, scheme)
        ? schemes[scheme]
        : otherwise;
      if (connector !== undefined) return connector.connect(node, local, signal);
      const known = Object.keys(schemes).map((name) => `${name}://`).join(", ") || "none";
      return Promise.reject(
        unknownNode(`No carrier reaches "${node}" (schemes known here: ${known})`),
      );
    },
  };
}

/**
 * Returns a connector for which a node that refuses this one is `unavailable`, unless its refusal is
 * final. So who dials a worker goes on without one that refuses, and without a server that has taken a
 * worker's address. A host that this program's own permissions exclude stays `permission_denied`:
 * waiting cannot help.
 */
export function withoutRefusals(
  far: Connector,
  isFinal: (node: string) => boolean = () => false,
): Connector {
  return {
    connect: (node, local, signal) =>
      far.connect(node, local, signal).catch((error) => {
        const { code, message, cause } = LeatError.from(error);
        // A server of another version of the protocol is `failed_precondition`.
        const isRefusal = code === "unauthenticated" || code === "failed_precondition" ||
          code === "permission_denied" && !(cause instanceof Deno.errors.NotCapable);
        if (isFinal(node) || !isRefusal) throw error;
        throw new LeatError("unavailable", message, { cause: error });
      }),
  };
}
