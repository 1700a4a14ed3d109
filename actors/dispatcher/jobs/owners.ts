/**
 * Whose a client and a job are.
 *
 * A client is presented with the secret that it was opened with, of which the journal holds a digest: ids
 * are counted, so that anybody could name them. A named job belongs to the identity that began it. Who
 * shares that identity shares its jobs: the name of a job is all that its trainers have in common.
 *
 * @module
 */
import { LeatError } from "../../../core/error.ts";
import { hashBytes } from "../../../core/hash.ts";
import type { Identity } from "../../runtime/identity.ts";
import type { Job } from "../state/entities.ts";

/** Secrets that were found to be right, by who has them: their digest is made once. */
const known = new WeakMap<object, string>();

/** Who has a secret, as the journal has it. Null: it was given none. */
interface Owned {
  readonly secret: string | null;
}

/** What is journaled of a secret. */
export function digestOf(secret: string): string {
  return hashBytes(secret);
}

/** @throws LeatError `permission_denied` for a request about that client which does not present its secret. */
export function checkSecret(owned: Owned, secret: string | undefined, clientId: number): void {
  if (owned.secret === null || secret !== undefined && known.get(owned) === secret) return;
  if (secret === undefined || digestOf(secret) !== owned.secret) {
    throw new LeatError(
      "permission_denied",
      `Client ${clientId} belongs to whoever opened it: a request about it presents the secret that ` +
        `it was opened with, and this one has ${secret === undefined ? "none" : "another"}`,
    );
  }
  known.set(owned, secret);
}

/** @throws LeatError `permission_denied` for somebody who may not join that job. */
export function checkJobOwner({ name, owner }: Job, { name: asker, role }: Identity): void {
  if (role === "admin" || owner === asker) return;
  throw new LeatError(
    "permission_denied",
    `The job "${name}" belongs to "${owner}", who began it, and this is "${asker}": choose another ` +
      `jobName, or have an admin do it`,
  );
}
