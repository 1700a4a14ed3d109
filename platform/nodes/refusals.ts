/** Nodes that refuse to be dialled. */
import type { Connector } from "../../actors/runtime/link.ts";
import { LeatError } from "../../core/error.ts";

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
    connect: (node, local) =>
      far.connect(node, local).catch((error) => {
        const { code, message, cause } = LeatError.from(error);
        const isRefusal = code === "unauthenticated" ||
          code === "permission_denied" && !(cause instanceof Deno.errors.NotCapable);
        if (isFinal(node) || !isRefusal) throw error;
        throw new LeatError("unavailable", message, { cause: error });
      }),
  };
}
