/**
 * Bounds the memory of answers to peers that do not read them. While too many bytes wait for a peer,
 * its link opens no more of its messages. Answers to messages that were opened wait unencoded.
 */
import { LeatError } from "../../core/error.ts";
import type { Identity } from "../../actors/runtime/identity.ts";

/** Above this many unread bytes, a link opens no more messages of a client or viewer. */
const UNREAD_BYTES_MAX = 64 * 2 ** 20;
/** The limit of an admin, and of a worker, which is sent the pipelines of all its tasks. */
const NODE_UNREAD_BYTES_MAX = 512 * 2 ** 20;
/** The limit of all links of a client or viewer to one node together. */
const IDENTITY_UNREAD_BYTES_MAX = 256 * 2 ** 20;
/** A link with at most this many unread bytes opens messages beyond its identity's bound, too. */
const UNREAD_BYTES_FREE = 2 ** 18;
/** Such a link gets one larger answer, while no more than this waits for the identity. */
const IDENTITY_UNREAD_BYTES_TOP = 512 * 2 ** 20;
/** Limit of the bytes of unencoded answers to one identity, without payloads (never copied). */
const WAITING_BYTES_MAX = 64 * 2 ** 20;

/** By role. All workers, or all programs of a cluster with one token, may be one identity. */
const BOUNDS: Readonly<Record<Identity["role"], { ofLink: number; ofIdentity: number }>> = {
  client: { ofLink: UNREAD_BYTES_MAX, ofIdentity: IDENTITY_UNREAD_BYTES_MAX },
  viewer: { ofLink: UNREAD_BYTES_MAX, ofIdentity: IDENTITY_UNREAD_BYTES_MAX },
  worker: { ofLink: NODE_UNREAD_BYTES_MAX, ofIdentity: Infinity },
  admin: { ofLink: NODE_UNREAD_BYTES_MAX, ofIdentity: Infinity },
};

/** Whether there is a bound for all links of an identity to one node together. */
export function hasBound({ role }: Identity): boolean {
  return BOUNDS[role].ofIdentity < Infinity;
}

/** What waits for all peers of one identity at one node. */
export class Unread {
  readonly #identity: Identity;
  readonly #resumes = new Set<() => void>();
  #bytes = 0;
  #waitingBytes = 0;
  #isResuming = false;
  #isLessAgain = false;

  constructor(identity: Identity) {
    this.#identity = identity;
  }

  /** Encoded bytes that its peers have not acknowledged. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts a change of the bytes of one link. After a decrease, waiting links continue. */
  change(bytes: number): void {
    this.#bytes += bytes;
    if (bytes < 0) this.#resumeAll();
  }

  /** Whether the requests of a peer must wait; `linkBytes` wait for the peer. */
  isClogged(linkBytes: number): boolean {
    return linkBytes > UNREAD_BYTES_FREE && !this.isFree(linkBytes);
  }

  /** Whether an answer of any size may be sent to a peer; `linkBytes` wait for it. */
  isFree(linkBytes: number): boolean {
    const { ofLink, ofIdentity } = BOUNDS[this.#identity.role];
    return linkBytes <= ofLink && this.#bytes <= ofIdentity;
  }

  /** Whether an answer of `bytes` may be sent to a peer; `linkBytes` wait for it. */
  mayTake(linkBytes: number, bytes: number): boolean {
    if (this.isFree(linkBytes) || linkBytes + bytes <= UNREAD_BYTES_FREE) return true;
    return linkBytes <= UNREAD_BYTES_FREE && this.#bytes + bytes <= IDENTITY_UNREAD_BYTES_TOP;
  }

  /**
   * Counts an answer that waits.
   * @throws LeatError `resource_exhausted` when too many bytes wait already.
   */
  wait(bytes: number): void {
    if (this.#waitingBytes + bytes > WAITING_BYTES_MAX) {
      const { name } = this.#identity;
      throw new LeatError(
        "resource_exhausted",
        `Answers to "${name}" wait until it reads earlier ones. There is no space for another of ${bytes} ` +
          "bytes: read answers before asking for more",
      );
    }
    this.#waitingBytes += bytes;
  }

  /** Uncounts an answer, which is sent or dropped. */
  waited(bytes: number): void {
    this.#waitingBytes -= bytes;
  }

  /** Calls back when fewer bytes wait, until `forget`. */
  remember(resume: () => void): void {
    this.#resumes.add(resume);
  }

  forget(resume: () => void): void {
    this.#resumes.delete(resume);
  }

  #resumeAll(): void {
    // A callback may end its link. Then there are fewer bytes again, and other links may go on.
    this.#isLessAgain = true;
    if (this.#isResuming) return;
    this.#isResuming = true;
    try {
      while (this.#isLessAgain && this.#resumes.size > 0) {
        this.#isLessAgain = false;
        for (const resume of [...this.#resumes]) resume();
      }
    } finally {
      this.#isResuming = false;
    }
  }
}
