/**
 * Who a sender is, as far as its connection has proved it. The node that receives a message notes this
 * beside it; nothing that a sender writes into the message changes it.
 *
 * @module
 */

/**
 * What somebody may do in a cluster.
 *
 * - `admin` may do everything.
 * - `worker` registers a worker, and speaks for that one alone.
 * - `client` registers datasets, joins jobs and reads elements.
 * - `viewer` looks at the state, and changes nothing.
 */
export type AccessRole = "admin" | "worker" | "client" | "viewer";

/** All roles. */
export const ACCESS_ROLES: readonly AccessRole[] = ["admin", "worker", "client", "viewer"];

/** A name and a role that a connection has proved. */
export interface Identity {
  /** The name of the token in the file of tokens; for people, and to tell owners apart. */
  readonly name: string;
  readonly role: AccessRole;
}

/** Whoever is in the same process. */
export const SAME_PROCESS: Identity = { name: "this process", role: "admin" };

/** Whoever connects where no token is asked for. */
export const ANYONE: Identity = { name: "anyone", role: "admin" };

/** Whoever knows the one token of a cluster. */
export const TOKEN_HOLDER: Identity = { name: "the token", role: "admin" };
