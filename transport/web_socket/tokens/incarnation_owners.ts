/**
 * Maps incarnations to identities. An incarnation is random, but other nodes learn it: it
 * distinguishes the messages of one node's life, so no other identity may use it.
 */
import type { Identity } from "../../../actors/runtime/identity.ts";
import { LeatError } from "../../../core/error.ts";

/** Incarnations remembered, also of closed links; the oldest is forgotten first. */
const OWNERS_MAX = 16_384;

/** The owners of incarnations. */
export class IncarnationOwners {
  readonly #owners = new Map<string, Identity>();

  /**
   * Claims an incarnation at a hello. A worker's claim overrides a client's.
   * @throws LeatError `permission_denied` when the incarnation belongs to another identity.
   */
  claim(incarnation: string, claimant: Identity): void {
    const owner = this.#owners.get(incarnation);
    const isOther = owner !== undefined && owner.name !== claimant.name;
    if (isOther && rank(claimant) <= rank(owner)) {
      throw new LeatError(
        "permission_denied",
        `"${claimant.name}" goes by the incarnation of a node of "${owner.name}"`,
      );
    }
    this.#owners.delete(incarnation);
    this.#owners.set(incarnation, claimant);
    if (this.#owners.size > OWNERS_MAX) this.#owners.delete(this.#owners.keys().next().value!);
  }

  /** Whether an identity still owns an incarnation, which a worker may take from a client. */
  isOf(incarnation: string, { name }: Identity): boolean {
    return this.#owners.get(incarnation)?.name === name;
  }
}

function rank({ role }: Identity): number {
  return role === "admin" ? 2 : role === "worker" ? 1 : 0;
}
