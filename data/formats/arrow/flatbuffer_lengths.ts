/**
 * Patches flatbuffers, on import, to refuse the length of a vector that exceeds its buffer.
 *
 * Arrow's library trusts the lengths in a message: a damaged one makes it create millions of
 * objects until the process runs out of memory. A vector has at least a byte per item, so no valid
 * message is refused.
 */
import { ByteBuffer } from "flatbuffers";

const lengthOf = ByteBuffer.prototype.__vector_len;

ByteBuffer.prototype.__vector_len = function (this: ByteBuffer, offset: number): number {
  const length = lengthOf.call(this, offset);
  if (length <= this.capacity()) return length;
  throw new RangeError(`a vector of ${length} items in a message of ${this.capacity()} bytes`);
};
