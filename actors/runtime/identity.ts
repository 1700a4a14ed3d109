/** A sender's identity, as its connection proved: the receiving node attaches it to messages. */

/**
 * What a member of a cluster may do.
 *
 * - `admin` may do everything.
 * - `worker` registers a worker, and sends requests for that worker only.
 * - `client` registers datasets, joins jobs and reads elements.
 * - `viewer` reads the state, and changes nothing.
 */
export type AccessRole = "admin" | "worker" | "client" | "viewer";

export const ACCESS_ROLES: readonly AccessRole[] = ["admin", "worker", "client", "viewer"];

/** A name and a role that a connection has proved. */
export interface Identity {
  /** The token's name in the tokens file, shown in messages and used to tell owners apart. */
  readonly name: string;
  readonly role: AccessRole;
}

/**
 * The key under which a receiver stores a sender's last number and kept answers. It contains the
 * identity, because incarnations are not secret: another program must not use up the numbers of
 * one. Keys of admins leave the identity out: a dispatcher that dials and is dialled has two.
 */
export function senderKeyOf(incarnation: string, { name, role }: Identity): string {
  return role === "admin" ? incarnation : `${incarnation} ${role} ${name}`;
}

/** Senders in the same process. */
export const SAME_PROCESS: Identity = { name: "this process", role: "admin" };

/** Senders over a connection that needs no token. */
export const ANYONE: Identity = { name: "anyone", role: "admin" };

/** Senders with the one token of a cluster. */
export const TOKEN_HOLDER: Identity = { name: "the token", role: "admin" };
