/** The child's end of the link of a `ChildProcess`. */
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import { openProcessLink, type ProcessLinkOptions } from "../../transport/process/link.ts";
import { standardInput, standardOutput } from "./pipes.ts";
import { readableSlots, writableSlots } from "./slot_files.ts";

/** The id of this program, which its parent chose. */
export function localNode(): NodeId {
  const [, , node, incarnation] = Deno.args as [string, string, string, string];
  return { node, incarnation };
}

/** The launcher's last argument, if this program was launched. */
export function toldByLauncher(): string | undefined {
  return Deno.args[4];
}

/**
 * The link to the process that started this one. When the folder of the slot files is removed, the
 * permissions for them become meaningless.
 */
export function linkToParent(options?: ProcessLinkOptions): Promise<Link> {
  const [incoming, outgoing] = Deno.args as [string, string];
  const streams = {
    incoming: standardInput(),
    outgoing: standardOutput(),
    incomingSlots: readableSlots(incoming),
    outgoingSlots: writableSlots(outgoing),
  };
  return openProcessLink(streams, localNode(), "dialler", options);
}
