/**
 * Bounds what waits for peers that send requests and do not read the answers. A link opens no more
 * of its peer's messages while too much waits for the peer, and answers to those that it has opened
 * wait without being encoded.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { Identity } from "../../actors/runtime/identity.ts";

/** From so many unread bytes on, a link opens no more messages of a client or viewer. */
const UNREAD_BYTES_MAX = 64 * 2 ** 20;
/** The same of a worker, to which the pipelines of all its tasks are sent, or an admin. */
const NODE_UNREAD_BYTES_MAX = 512 * 2 ** 20;
/** The same for all links of a client or viewer to one node together, */
const IDENTITY_UNREAD_BYTES_MAX = 256 * 2 ** 20;
/** except for a link for which no more than this waits. */
const UNREAD_BYTES_FREE = 2 ** 18;
/** Such links get one larger answer each, while no more than this waits for the identity. */
const IDENTITY_UNREAD_BYTES_TOP = 512 * 2 ** 20;
/** Most bytes of answers of one identity that wait, without the payloads: these are not copied. */
const WAITING_BYTES_MAX = 64 * 2 ** 20;

/** By role. All workers, or all programs of a cluster with one token, may be one identity. */
const BOUNDS: Readonly<Record<Identity["role"], { ofLink: number; ofIdentity: number }>> = {
  client: { ofLink: UNREAD_BYTES_MAX, ofIdentity: IDENTITY_UNREAD_BYTES_MAX },
  viewer: { ofLink: UNREAD_BYTES_MAX, ofIdentity: IDENTITY_UNREAD_BYTES_MAX },
  worker: { ofLink: NODE_UNREAD_BYTES_MAX, ofIdentity: Infinity },
  admin: { ofLink: NODE_UNREAD_BYTES_MAX, ofIdentity: Infinity },
};

/** Whether all links of an identity to one node have bounds together. */
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

  /** The bytes of one of the links have changed. If there are fewer, waiting links go on. */
  change(bytes: number): void {
    this.#bytes += bytes;
    if (bytes < 0) this.#resumeAll();
  }

  /** Whether the requests of a peer wait, for which so many bytes wait. */
  isClogged(linkBytes: number): boolean {
    return linkBytes > UNREAD_BYTES_FREE && !this.isFree(linkBytes);
  }

  /** Whether an answer of any size may be sent to a peer for which so many bytes wait. */
  isFree(linkBytes: number): boolean {
    const { ofLink, ofIdentity } = BOUNDS[this.#identity.role];
    return linkBytes <= ofLink && this.#bytes <= ofIdentity;
  }

  /** Whether an answer of `bytes` may be sent to a peer for which so many bytes wait. */
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
        `Answers to "${name}" wait until it reads earlier ones, and this one of ${bytes} bytes is one too ` +
          "many: read answers before asking for more",
      );
    }
    this.#waitingBytes += bytes;
  }

  /** An answer waits no more. */
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
    // A link that goes on may end, so that there are fewer bytes again.
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
