/**
 * The end of the link that is held by a program that was started as a `ChildProcess`.
 *
 * @module
 */
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import { openProcessLink, type ProcessLinkOptions } from "../../transport/process/link.ts";
import { standardInput, standardOutput } from "./pipes.ts";
import { readableSlots, writableSlots } from "./slot_files.ts";

/** Who this program is. Its starter names it. */
export function localNode(): NodeId {
  const [, , node, incarnation] = Deno.args as [string, string, string, string];
  return { node, incarnation };
}

/** What the launcher says in a last argument, where this program was launched. */
export function toldByLauncher(): string | undefined {
  return Deno.args[4];
}

/**
 * The link to the process that has started this program. What the program may still do with the paths
 * of the slot files means nothing once their folder is gone.
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
