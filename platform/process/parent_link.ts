/** The child's end of the link of a `ChildProcess`. */
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import { openProcessLink, type ProcessLinkOptions } from "../../transport/process/link.ts";
import type { PipeWriter } from "../../transport/process/streams.ts";
import { standardInput, standardOutput } from "./pipes.ts";
import { readableSlots, writableSlots } from "./slot_files.ts";

/** The node id that the parent chose for this program. */
export function localNode(): NodeId {
  const [, , node, incarnation] = Deno.args as [string, string, string, string];
  return { node, incarnation };
}

/** The argument that the launcher appends; undefined if the launcher did not start this program. */
export function launcherArgument(): string | undefined {
  return Deno.args[4];
}

/**
 * Opens the link to the process that started this one. The parent then removes the slot files, so
 * this program's permissions for their paths give access to nothing.
 * @param pipe What writes to the parent's pipe.
 */
export function linkToParent(
  options?: ProcessLinkOptions,
  pipe: PipeWriter = standardOutput(),
): Promise<Link> {
  outliveStopSignals();
  const [incoming, outgoing] = Deno.args as [string, string];
  const streams = {
    incoming: standardInput(),
    outgoing: pipe,
    incomingSlots: readableSlots(incoming),
    outgoingSlots: writableSlots(outgoing),
  };
  return openProcessLink(streams, localNode(), "dialler", options);
}

/**
 * Leaves it to the parent to end this program. A terminal's Ctrl-C, systemd and Slurm send their
 * signal to all processes of a group, and the parent may need this one to finish its work.
 */
function outliveStopSignals(): void {
  const ignore = () => {};
  Deno.addSignalListener("SIGINT", ignore);
  if (Deno.build.os !== "windows") Deno.addSignalListener("SIGTERM", ignore);
}
