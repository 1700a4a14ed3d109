/** The other end of a WebSocket link. */
import type { Identity } from "../../actors/runtime/identity.ts";
import type { NodeId } from "../../actors/runtime/link.ts";
import type { SlotFile } from "../process/slots.ts";
import type { HeldMemory } from "./held_frames.ts";
import type { NearListener } from "./slots.ts";
import type { Unread } from "./unread.ts";

/** The other end, according to its hello. */
export interface Peer {
  /** As this node calls it. */
  readonly remote: NodeId;
  /** As it calls itself; a dialled node may have several addresses. */
  readonly ownName: string;
  readonly identity: Identity;
  readonly messageBytesMax: number;
  /** A dialler of this host may share slots with this node. */
  readonly near?: NearListener | undefined;
  /** What waits for all peers of a listener with that identity; it bounds this. */
  readonly unread?: Unread;
  /** What all links of a listener hold for that identity; it bounds this. */
  readonly held?: HeldMemory;
  /** Bytes of incomplete messages of all peers of a listener with that identity. */
  readonly incompleteBytesOf?: (identity: Identity) => number;
  /** This dialler has created a file for slots in the listener's folder. */
  readonly slots?: { readonly name: string; readonly file: SlotFile } | undefined;
}
