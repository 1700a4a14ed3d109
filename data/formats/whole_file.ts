/** Reads files that each become one element. */
import { LeatError } from "../../core/error.ts";
import { END } from "../iterator.ts";
import { type ByteReader, READ_BYTES } from "./byte_reader.ts";
import type { FormatReader } from "./format_reader.ts";

const WHOLE_FILE_BYTES_MAX = 1024 * 1024 * 1024;

export interface WholeFilePosition {
  readonly ended: boolean;
}

/** Reads a whole file and makes one element of it. Errors name the file. */
export function wholeFileReader(
  bytes: ByteReader,
  convert: (contents: Uint8Array) => unknown,
  position?: WholeFilePosition,
): FormatReader {
  let ended = position?.ended ?? false;
  const read = async () => {
    const contents = await contentsOf(bytes);
    const { path } = bytes;
    if (bytes.closed) return END;
    try {
      return await convert(contents);
    } catch (cause) {
      const { code, message, details } = LeatError.from(cause);
      throw new LeatError(code, `${path}: ${message}`, { cause, details: { ...details, path } });
    }
  };
  return {
    get disposed() {
      return bytes.closed;
    },
    step: () => {
      if (ended || bytes.closed) return END;
      ended = true;
      return read();
    },
    save: () => ({ ended: ended && !bytes.hasFailed }) satisfies WholeFilePosition,
    close: () => bytes.close(),
  };
}

/** Reads a whole file. An uncompressed file has a known size, so it is read without a copy. */
async function contentsOf(bytes: ByteReader): Promise<Uint8Array> {
  const { remaining } = bytes;
  if (remaining < Infinity) {
    requireBytes(bytes, remaining);
    const contents = new Uint8Array(remaining);
    return contents.subarray(0, await bytes.takeInto(contents));
  }
  let count = 0;
  for (
    let wanted = READ_BYTES;
    count < wanted;
    wanted = Math.min(2 * wanted, WHOLE_FILE_BYTES_MAX + 1)
  ) {
    count = await bytes.fill(wanted);
    requireBytes(bytes, count);
    if (count < wanted) break;
  }
  return bytes.take(count);
}

function requireBytes({ path, stream }: ByteReader, count: number): void {
  if (count <= WHOLE_FILE_BYTES_MAX) return;
  throw new LeatError(
    "resource_exhausted",
    `${path} has at least ${count} bytes${stream}, more than ${WHOLE_FILE_BYTES_MAX} ` +
      "(WHOLE_FILE_BYTES_MAX).",
    { details: { path } },
  );
}
