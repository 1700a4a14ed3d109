/**
 * Importing this makes flatbuffers refuse the length of a vector that its buffer cannot hold.
 *
 * Arrow's library believes what a message says: a damaged length has it make millions of objects, until memory is out and the process
 * is gone. A vector has at least a byte for each of its items, so no whole message is refused.
 */

import { ByteBuffer } from "flatbuffers";

const lengthOf = ByteBuffer.prototype.__vector_len;

ByteBuffer.prototype.__vector_len = function (this: ByteBuffer, offset: number): number {
  const length = lengthOf.call(this, offset);
  if (length <= this.capacity()) return length;
  throw new RangeError(`a vector of ${length} items in a message of ${this.capacity()} bytes`);
};
