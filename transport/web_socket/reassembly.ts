/** Reassembles large messages from fragments. */
import { LeatError } from "../../core/error.ts";
import { FramePool } from "../codec.ts";
import { type Fragment, type FragmentHead, malformed } from "./frames.ts";

/** Limit of the incomplete messages of one link at the same time. */
const INCOMPLETE_MAX = 16;

interface Incomplete {
  readonly bytes: Uint8Array;
  received: number;
}

/** Collects fragments. A message's buffer is allocated once, when its size is within the limit. */
export class Reassembly {
  readonly #bytesMax: number;
  readonly #incomplete = new Map<number, Incomplete>();
  readonly #pool: FramePool;
  readonly #bytesOfAll: () => number;
  #bytes = 0;

  /**
   * @param bytesMax bounds one message, and all incomplete ones together.
   * @param pool provides the memory of messages. Default: new memory.
   * @param bytesOfAll counts the incomplete messages of all links that share the bound. Default: those
   *   of this one.
   */
  constructor(bytesMax: number, pool = new FramePool(), bytesOfAll?: () => number) {
    this.#bytesMax = bytesMax;
    this.#pool = pool;
    this.#bytesOfAll = bytesOfAll ?? (() => this.#bytes);
  }

  /** Bytes held for incomplete messages. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Adds a fragment; returns the message if complete. Copies the bytes, unless they are in the
   * memory that `place` returned.
   * @throws LeatError as `place` does.
   */
  add(fragment: Fragment): Uint8Array | undefined {
    const { id, total, data } = fragment;
    const place = this.place(fragment, data.length);
    if (data.buffer !== place.buffer) place.set(data);
    const message = this.#incomplete.get(id)!;
    message.received += data.length;
    if (message.received < total) return undefined;
    this.#incomplete.delete(id);
    this.#bytes -= total;
    return message.bytes;
  }

  /**
   * Where the `byteLength` bytes of a fragment belong. Call `add` once they are there.
   * @throws LeatError `resource_exhausted` beyond the limits, `invalid_argument` for a fragment
   * that does not continue the received part.
   */
  place(fragment: FragmentHead, byteLength: number): Uint8Array {
    const { id, offset, total } = fragment;
    const message = this.#incomplete.get(id) ?? this.#begin(fragment);
    if (offset !== message.received || total !== message.bytes.length) {
      throw malformed(
        `fragment ${offset} of ${total} bytes of message ${id}, of which ${message.received} of ${message.bytes.length} bytes are there`,
      );
    }
    if (byteLength > total - offset) throw malformed(`message ${id} continues beyond its end`);
    return message.bytes.subarray(offset, offset + byteLength);
  }

  /** Drops all incomplete messages: the link is closed. */
  clear(): void {
    this.#incomplete.clear();
    this.#bytes = 0;
  }

  #begin({ id, offset, total }: FragmentHead): Incomplete {
    if (offset !== 0) throw malformed(`message ${id} begins with a fragment at byte ${offset}`);
    if (this.#incomplete.size >= INCOMPLETE_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `${INCOMPLETE_MAX} messages are incomplete already; a sender finishes some before it begins others`,
      );
    }
    const bytes = this.#bytesOfAll();
    if (total > this.#bytesMax - bytes) {
      throw new LeatError(
        "resource_exhausted",
        `A message of ${total} bytes in addition to ${bytes} bytes of incomplete ones is over the limit of ${this.#bytesMax}; raise messageBytesMax or send smaller batches`,
        { details: { bytes: total, bytesMax: this.#bytesMax } },
      );
    }
    const message = { bytes: allocate(total, this.#pool), received: 0 };
    this.#incomplete.set(id, message);
    this.#bytes += total;
    return message;
  }
}

function allocate(byteLength: number, pool: FramePool): Uint8Array {
  try {
    return new Uint8Array(pool.take(byteLength));
  } catch (cause) {
    throw new LeatError("resource_exhausted", `No memory for a message of ${byteLength} bytes`, {
      cause,
    });
  }
}
