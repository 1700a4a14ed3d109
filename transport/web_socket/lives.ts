/**
 * Whose lives of nodes are whose. An incarnation is drawn at random, and others hear of it: it tells the
 * messages of one life from all others, so nobody else may go by it.
 *
 * @module
 */
import type { Identity } from "../../actors/runtime/identity.ts";
import { LeatError } from "../../core/error.ts";

/** Lives that are remembered, also when their links are gone; beyond it the oldest is forgotten. */
const LIVES_MAX = 16_384;

/** See the module. */
export class Lives {
  readonly #owners = new Map<string, Identity>();

  /**
   * Somebody introduces itself. A worker's word counts more than a client's.
   *
   * @throws LeatError `permission_denied` when the life is that of somebody else.
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
    if (this.#owners.size > LIVES_MAX) this.#owners.delete(this.#owners.keys().next().value!);
  }

  /** Whether a life is still somebody's: a worker may have taken back what a client had taken. */
  isOf(incarnation: string, { name }: Identity): boolean {
    return this.#owners.get(incarnation)?.name === name;
  }
}

function rank({ role }: Identity): number {
  return role === "admin" ? 2 : role === "worker" ? 1 : 0;
}
