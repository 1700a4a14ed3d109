/** Connectors composed of others. */
import { type Connector, unknownNode } from "../actors/runtime/link.ts";

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
