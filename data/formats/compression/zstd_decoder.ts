/** Decompresses zstd files, up to the block that is damaged. */
import { Decompress } from "fzstd";
import { LeatError } from "../../../core/error.ts";
import type { OpenFile } from "../../host.ts";
import type { Decoder } from "../byte_source.ts";
import { plainBytes, READ_BYTES } from "../plain_bytes.ts";
import { ZstdFrames } from "./zstd_frames.ts";

/** Bytes decompressed at a time. Their output, at most 128 KiB for every 4 bytes, is held in memory. */
const PUSH_BYTES = 8 * 1024;

/**
 * Decompresses zstd with a library, because Deno's `node:zlib` stops after the first frame and accepts
 * a truncated one. Neither verifies checksums. Damage loses its block, at most 128 KiB.
 */
export function zstdDecoder(path: string, file: OpenFile): Decoder {
  const chunks = decode(path, file);
  return { next: () => chunks.next(), destroy: () => {} };
}

async function* decode(path: string, file: OpenFile): AsyncGenerator<Uint8Array> {
  const decoded: Uint8Array[] = [];
  const stream = new Decompress((chunk) => void decoded.push(chunk));
  const frames = new ZstdFrames();
  const source = plainBytes(path, file, 0);
  let offset = 0;
  for (let count = -1; count !== 0;) {
    const bytes = new Uint8Array(READ_BYTES);
    count = await source.read(bytes);
    for (let at = 0; at < count || count === 0; at += PUSH_BYTES) {
      const input = bytes.subarray(at, Math.min(at + PUSH_BYTES, count));
      const refusal = attempt(() => frames.push(input));
      const sound = refusal === undefined ? input : input.subarray(0, frames.soundBytes);
      const error = attempt(() => stream.push(sound, count === 0)) ?? refusal;
      yield* decoded.splice(0);
      if (error !== undefined) throw damaged(path, offset, error);
      if (count === 0) break;
      offset += input.length;
    }
  }
}

function attempt(action: () => void): Error | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    return LeatError.from(error);
  }
}

function damaged(path: string, offset: number, cause: Error): LeatError {
  if (cause instanceof LeatError && cause.code === "resource_exhausted") {
    return new LeatError(cause.code, `Cannot read ${path}: ${cause.message}.`, {
      cause,
      details: { path, offset },
    });
  }
  return new LeatError(
    "data_loss",
    `Damaged file ${path}: its zstd compression cannot be undone from byte ${offset} on, or a few ` +
      `after it: ${cause.message}.`,
    { cause, details: { path, offset } },
  );
}
