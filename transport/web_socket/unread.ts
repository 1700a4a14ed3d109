/**
 * Bounds what waits for clients and viewers that send requests and do not read the answers. A link
 * opens no more of its peer's frames while too much waits for the peer.
 *
 * @module
 */
import type { Identity } from "../../actors/runtime/identity.ts";

/** From so many unread bytes on, a link opens no more frames of its peer. */
const UNREAD_BYTES_MAX = 64 * 2 ** 20;
/** The same for all links of an identity to one node together, */
const IDENTITY_UNREAD_BYTES_MAX = 256 * 2 ** 20;
/** except for a link for which no more than this waits. */
const UNREAD_BYTES_FREE = 2 ** 18;

/** Whose requests wait. A worker has large pipelines sent to it, and an admin is trusted. */
const BOUNDED: Readonly<Record<Identity["role"], boolean>> = {
  ...{ client: true, viewer: true, worker: false, admin: false },
};

/** Bytes that wait for the peers of one node. */
export interface Unread {
  /** Bytes that wait for all peers of an identity. */
  of(identity: Identity): number;
}

/** Whether the requests of a peer wait, for which so many bytes wait. */
export function isClogged(bytes: number, identity: Identity, unread: Unread | undefined): boolean {
  if (!BOUNDED[identity.role] || unread === undefined || bytes <= UNREAD_BYTES_FREE) return false;
  return bytes > UNREAD_BYTES_MAX || unread.of(identity) > IDENTITY_UNREAD_BYTES_MAX;
}
