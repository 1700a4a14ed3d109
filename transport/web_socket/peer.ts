/** The other end of a WebSocket link. */
import type { Identity } from "../../actors/runtime/identity.ts";
import type { NodeId } from "../../actors/runtime/link.ts";
import type { SlotFile } from "../process/slots.ts";
import type { HeldMemory } from "./held_frames.ts";
import type { NearListener } from "./slots.ts";
import type { Unread } from "./unread.ts";

/** The other end, according to its hello. */
export interface Peer {
  /** By the name that this node uses for it. */
  readonly remote: NodeId;
  /** The name that it has for itself. A dialled node may have several addresses. */
  readonly ownName: string;
  readonly identity: Identity;
  readonly messageBytesMax: number;
  /** On the listening side: lets a dialler of this host share slots with this node. */
  readonly near?: NearListener | undefined;
  /** Counts and bounds what waits for all of a listener's peers with that identity. */
  readonly unread?: Unread;
  /** Counts and bounds what all of a listener's links hold for that identity. */
  readonly held?: HeldMemory;
  /** Bytes of incomplete messages on all of a listener's links with that identity. */
  readonly incompleteBytesOf?: (identity: Identity) => number;
  /** On the dialling side: the file for slots that this node has created in the listener's folder. */
  readonly slots?: { readonly name: string; readonly file: SlotFile } | undefined;
}
