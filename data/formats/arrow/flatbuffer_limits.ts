/**
 * Patches flatbuffers, on import, to refuse messages that claim more than their bytes can hold.
 *
 * Arrow's library trusts a message. One with a damaged length makes it create millions of objects. So
 * does one whose parts are shared: fields with the same children, at each of twenty levels, or names
 * that are all the same megabyte.
 */
import { ByteBuffer } from "flatbuffers";

/** How often the library may follow an offset, for each byte of the message. An offset has 4 bytes. */
const VISITS_MAX = 4;

/** How many bytes of text the library may read, for each byte of the message. */
const TEXT_MAX = 16;

interface Use {
  visits: number;
  textBytes: number;
}

/** What has been read of each message. */
const uses = new WeakMap<ByteBuffer, Use>();

function useOf(message: ByteBuffer): Use {
  return uses.getOrInsertComputed(message, () => ({ visits: 0, textBytes: 0 }));
}

const { __vector_len: lengthOf, __indirect: followed, __string: textAt } = ByteBuffer.prototype;

/** Each item of a vector has at least one byte, so no valid message is refused. */
ByteBuffer.prototype.__vector_len = function (this: ByteBuffer, offset: number): number {
  const length = lengthOf.call(this, offset);
  if (length <= this.capacity()) return length;
  throw new RangeError(`a vector of ${length} items in a message of ${this.capacity()} bytes`);
};

ByteBuffer.prototype.__indirect = function (this: ByteBuffer, offset: number): number {
  if (++useOf(this).visits > VISITS_MAX * this.capacity()) throw shares(this, "parts");
  return followed.call(this, offset);
};

ByteBuffer.prototype.__string = function (this: ByteBuffer, offset, encoding) {
  const use = useOf(this);
  use.textBytes += this.readInt32(offset + this.readInt32(offset));
  if (use.textBytes > TEXT_MAX * this.capacity()) throw shares(this, "texts");
  return textAt.call(this, offset, encoding);
};

function shares(message: ByteBuffer, what: string): RangeError {
  return new RangeError(
    `its ${what} are read too often for a message of ${message.capacity()} bytes`,
  );
}
