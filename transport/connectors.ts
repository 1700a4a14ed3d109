/** Connectors composed of others, and the names that they dial. */
import { type Connector, unknownNode } from "../actors/runtime/link.ts";

/** Whether a node's name is an address, as of a node that listens. */
export function isAddress(node: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(node);
}

/** Chooses a connector by the scheme of the node's name; other names go to `otherwise`. */
export function connectorByScheme(
  schemes: Readonly<Record<string, Connector>>,
  otherwise?: Connector,
): Connector {
  return {
    connect(node, local) {
      const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//.exec(node) ?? [];
      const connector = scheme !== undefined && Object.hasOwn(schemes, scheme)
        ? schemes[scheme]
        : otherwise;
      if (connector !== undefined) return connector.connect(node, local);
      const known = Object.keys(schemes).map((name) => `${name}://`).join(", ") || "none";
      return Promise.reject(
        unknownNode(`No carrier reaches "${node}" (schemes known here: ${known})`),
      );
    },
  };
}
