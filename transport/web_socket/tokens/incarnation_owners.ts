/**
 * Which identity owns an incarnation. An incarnation is random, but other nodes learn it. Messages
 * are attributed to a node by its incarnation, so no other identity may use it.
 */
import type { Identity } from "../../../actors/runtime/identity.ts";
import { LeatError } from "../../../core/error.ts";

/**
 * Limit of each identity's remembered incarnations without an open link. Beyond it the identity's
 * oldest is forgotten: a flood of hellos from one identity affects no other.
 */
export const UNLINKED_MAX = 4_096;

interface Claim {
  readonly owner: Identity;
  /** Open links. While there are some, the claim is not forgotten. */
  links: number;
}

/** The owners of incarnations. */
export class IncarnationOwners {
  readonly #claims = new Map<string, Claim>();
  /** The incarnations of each identity that have no open link, the oldest first. */
  readonly #unlinked = new Map<string, Set<string>>();

  /**
   * Claims an incarnation at a hello. A worker's claim overrides a client's.
   * @throws LeatError `permission_denied` when the incarnation belongs to another identity.
   */
  claim(incarnation: string, claimant: Identity): void {
    const claim = this.#claims.get(incarnation);
    const isOther = claim !== undefined && claim.owner.name !== claimant.name;
    if (isOther && rank(claimant) <= rank(claim.owner)) {
      throw new LeatError(
        "permission_denied",
        `"${claimant.name}" uses the incarnation of a node of "${claim.owner.name}"`,
      );
    }
    if (isOther) this.#unlinked.get(claim.owner.name)?.delete(incarnation);
    const links = claim === undefined || isOther ? 0 : claim.links;
    this.#claims.set(incarnation, { owner: claimant, links });
    if (links === 0) this.#rememberUnlinked(incarnation, claimant);
  }

  /** A link of the incarnation's owner has opened. */
  linked(incarnation: string): void {
    const claim = this.#claims.get(incarnation);
    if (claim === undefined) return;
    claim.links++;
    this.#unlinked.get(claim.owner.name)?.delete(incarnation);
  }

  /** A link of `identity` has closed. The identity may have lost the incarnation since. */
  unlinked(incarnation: string, identity: Identity): void {
    const claim = this.#claims.get(incarnation);
    if (claim?.owner.name !== identity.name || claim.links === 0) return;
    if (--claim.links === 0) this.#rememberUnlinked(incarnation, identity);
  }

  /** Whether an identity owns an incarnation still: a worker may take it from a client. */
  isOf(incarnation: string, { name }: Identity): boolean {
    return this.#claims.get(incarnation)?.owner.name === name;
  }

  #rememberUnlinked(incarnation: string, { name }: Identity): void {
    const own = this.#unlinked.getOrInsertComputed(name, () => new Set());
    own.delete(incarnation);
    own.add(incarnation);
    if (own.size <= UNLINKED_MAX) return;
    const [oldest] = own;
    own.delete(oldest!);
    this.#claims.delete(oldest!);
  }
}

function rank({ role }: Identity): number {
  return role === "admin" ? 2 : role === "worker" ? 1 : 0;
}
