/** Reads the bytes of an uncompressed file. */
import { LeatError } from "../../core/error.ts";
import { then } from "../../core/then.ts";
import type { OpenFile } from "../host.ts";
import type { ByteSource } from "./byte_source.ts";

/** Bytes per read, unless a caller needs more. So at most this many bytes are read ahead. */
export const READ_BYTES = 256 * 1024;

/** Reads a file from an offset on, and detects when it has become shorter. */
export function plainBytes(path: string, file: OpenFile, offset: number): ByteSource {
  const { sizeBytes } = file;
  const advance = (count: number) => {
    if (count === 0) {
      throw new LeatError(
        "data_loss",
        `${path} was cut short while it was read: it had ${sizeBytes} bytes when it was opened, and ` +
          `ends at byte ${offset} now.`,
        { details: { path } },
      );
    }
    offset += count;
    return count;
  };
  return {
    read(into) {
      // Uses the known size, because asking remote storage for the end would cost a round trip.
      if (offset >= sizeBytes) return 0;
      return then(file.read(into, offset), advance);
    },
    skip(count) {
      const skipped = Math.min(count, Math.max(sizeBytes - offset, 0));
      offset += skipped;
      return skipped;
    },
    close: () => file.close(),
  };
}
