/**
 * Patches flatbuffers, on import, to refuse the length of a vector that exceeds its buffer.
 *
 * Arrow's library trusts the lengths in a message: with a damaged one it creates millions of objects
 * until the process runs out of memory. Each item of a vector has at least one byte, so no valid
 * message is refused.
 */
import { ByteBuffer } from "flatbuffers";

const lengthOf = ByteBuffer.prototype.__vector_len;

ByteBuffer.prototype.__vector_len = function (this: ByteBuffer, offset: number): number {
  const length = lengthOf.call(this, offset);
  if (length <= this.capacity()) return length;
  throw new RangeError(`a vector of ${length} items in a message of ${this.capacity()} bytes`);
};
