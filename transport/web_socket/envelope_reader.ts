/** Reads a peer's messages, and refuses those that are too long or in the name of another node. */
import { LeatError } from "../../core/error.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { decodeMessage, type DecodeOptions, type FramePool } from "../codec.ts";
import { asEnvelope } from "../envelopes.ts";
import { byeReason } from "../hello.ts";
import { STRUCTURE_PER_ENVELOPE_BYTE } from "../limits.ts";
import { ENVELOPE_BYTES_MAX } from "./envelope_limits.ts";
import { FRAME, malformed } from "./frames.ts";
import type { Peer } from "./peer.ts";

export class EnvelopeReader {
  readonly #peer: Pick<Peer, "remote" | "ownName" | "identity">;
  /** The prefix of the incarnations of the peer's actors. */
  readonly #incarnationPrefix: string;
  readonly #pool: FramePool;

  /** @param pool gets the memory of payloads that are released. */
  constructor(peer: Pick<Peer, "remote" | "ownName" | "identity">, pool: FramePool) {
    this.#peer = peer;
    this.#incarnationPrefix = `${peer.remote.incarnation}-`;
    this.#pool = pool;
  }

  /**
   * The envelope of a message, or the reason of a goodbye.
   * @throws LeatError for a message that violates the protocol.
   */
  read(bytes: Uint8Array, cameInSlot: boolean): Envelope | LeatError {
    const message = this.#decode(bytes, { pool: this.#pool, cameInSlot });
    return byeReason(message) ?? this.#named(asEnvelope(message));
  }

  /** The reason of a frame that is a goodbye. */
  byeIn(frame: Uint8Array | undefined): LeatError | undefined {
    if (frame?.[0] !== FRAME.MESSAGE) return undefined;
    try {
      return byeReason(this.#decode(frame));
    } catch {
      return undefined;
    }
  }

  /**
   * @throws LeatError `resource_exhausted` for a long envelope, or for structure that is many times
   * an envelope, before it takes memory.
   */
  #decode(bytes: Uint8Array, options: DecodeOptions = {}): unknown {
    const { role, name } = this.#peer.identity;
    const bytesMax = ENVELOPE_BYTES_MAX[role];
    const length = bytes.length <= bytesMax
      ? 0
      : new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
    if (length > bytesMax) {
      throw new LeatError(
        "resource_exhausted",
        `An envelope of ${length} bytes from "${name}", over the limit of ${bytesMax} for a ${role}`,
      );
    }
    return decodeMessage(bytes, {
      ...options,
      structureBytesMax: STRUCTURE_PER_ENVELOPE_BYTE * bytesMax,
    });
  }

  /** Gives the source the name that this node uses for it, so that answers go over this link. */
  #named(envelope: Envelope): Envelope {
    const { source } = envelope;
    const { remote: { node }, ownName } = this.#peer;
    if (!source.incarnation.startsWith(this.#incarnationPrefix)) {
      throw malformed(
        `a message of an actor of another incarnation, "${source.incarnation.slice(0, 80)}"`,
      );
    }
    if (source.node === node) return envelope;
    if (source.node === ownName) return { ...envelope, source: { ...source, node } };
    throw malformed(`a message in the name of another node, "${source.node.slice(0, 80)}"`);
  }
}
