/**
 * Bounds what waits for peers that send requests and do not read the answers. A link opens no more of
 * its peer's frames while too much waits for the peer.
 *
 * @module
 */
import type { Identity } from "../../actors/runtime/identity.ts";

/** From so many unread bytes on, a link opens no more frames of a client or viewer. */
const UNREAD_BYTES_MAX = 64 * 2 ** 20;
/** The same of a worker, to which the pipelines of all its tasks are sent, or an admin. */
const NODE_UNREAD_BYTES_MAX = 512 * 2 ** 20;
/** The same for all links of a client or viewer to one node together, */
const IDENTITY_UNREAD_BYTES_MAX = 256 * 2 ** 20;
/** except for a link for which no more than this waits. */
const UNREAD_BYTES_FREE = 2 ** 18;

/** By role. All workers, or all programs of a cluster with one token, may be one identity. */
const BOUNDS: Readonly<Record<Identity["role"], { ofLink: number; ofIdentity: number }>> = {
  client: { ofLink: UNREAD_BYTES_MAX, ofIdentity: IDENTITY_UNREAD_BYTES_MAX },
  viewer: { ofLink: UNREAD_BYTES_MAX, ofIdentity: IDENTITY_UNREAD_BYTES_MAX },
  worker: { ofLink: NODE_UNREAD_BYTES_MAX, ofIdentity: Infinity },
  admin: { ofLink: NODE_UNREAD_BYTES_MAX, ofIdentity: Infinity },
};

/** Bytes that wait for the peers of one node. */
export interface Unread {
  /** Bytes that wait for all peers of an identity. */
  of(identity: Identity): number;
}

/** Whether all links of an identity to one node have bounds together. */
export function hasBound({ role }: Identity): boolean {
  return BOUNDS[role].ofIdentity < Infinity;
}

/** Whether the requests of a peer wait, for which so many bytes wait. */
export function isClogged(bytes: number, identity: Identity, unread: Unread | undefined): boolean {
  if (unread === undefined || bytes <= UNREAD_BYTES_FREE) return false;
  const { ofLink, ofIdentity } = BOUNDS[identity.role];
  return bytes > ofLink || (ofIdentity < Infinity && unread.of(identity) > ofIdentity);
}
