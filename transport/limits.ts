/** The limits of every carrier. */
import { LeatError } from "../core/error.ts";
import { RaggedTensor, Tensor } from "../core/tensor.ts";
import type { Envelope } from "../actors/runtime/envelope.ts";
import { MESSAGE_BYTES_MAX } from "./codec.ts";
import { Payload } from "./payload.ts";

/** Limits of one link; omitted fields have defaults. */
export interface LinkLimits {
  /** A larger message is refused with `resource_exhausted`. Default 1 GiB. */
  readonly messageBytesMax: number;
  /** `ready()` waits once this much is buffered. Default 16 MiB. */
  readonly highWaterBytes: number;
  /** `ready()` resolves once no more than this is buffered. Default 4 MiB. */
  readonly lowWaterBytes: number;
}

/** See {@linkcode LinkLimits}. */
export const LINK_LIMITS: LinkLimits = {
  messageBytesMax: MESSAGE_BYTES_MAX,
  highWaterBytes: 16 * 2 ** 20,
  lowWaterBytes: 4 * 2 ** 20,
};

/** Approximate bytes of a small message besides its body: names, numbers and bookkeeping. */
const ENVELOPE_BYTES = 256;

/**
 * Limit of a received message's structure, for each byte that its envelope may have. Payloads need a
 * limit, too: each four bytes of a tensor's offsets become a text or an array of bytes.
 */
export const STRUCTURE_PER_ENVELOPE_BYTE = 16;

export function messageTooLarge(envelope: Envelope, bytes: number, bytesMax: number): LeatError {
  const what = "method" in envelope ? `"${envelope.method}"` : envelope.kind;
  return new LeatError(
    "resource_exhausted",
    `Message ${what} for ${envelope.target.node}${envelope.target.path} has ${bytes} bytes, over ` +
      `the link's limit of ${bytesMax}; send smaller batches or raise messageBytesMax`,
    { details: { bytes, bytesMax } },
  );
}

/** The error of an envelope that could not be encoded. */
export function encodingError(error: unknown, envelope: Envelope, bytesMax: number): unknown {
  const isTooLarge = error instanceof LeatError && error.code === "resource_exhausted";
  const bytes = isTooLarge ? error.details?.byteLength : undefined;
  return typeof bytes === "number" ? messageTooLarge(envelope, bytes, bytesMax) : error;
}

/** Approximate bytes of an envelope, for carriers that never encode it. */
export function envelopeBytes(envelope: Envelope): number {
  return ENVELOPE_BYTES + ("body" in envelope ? bodyBytes(envelope.body) : 0);
}

export function bodyBytes(value: unknown): number {
  if (typeof value === "string") return 2 * value.length;
  if (typeof value !== "object" || value === null) return 8;
  if (ArrayBuffer.isView(value) || value instanceof Payload) return value.byteLength;
  if (value instanceof Tensor) return arrayBytes(value.data);
  if (value instanceof RaggedTensor) {
    return bodyBytes(value.values) + value.rowSplits.byteLength;
  }
  let bytes = 16;
  for (const item of Array.isArray(value) ? value : Object.values(value)) {
    bytes += 8 + bodyBytes(item);
  }
  return bytes;
}

function arrayBytes(data: { readonly byteLength?: number } | readonly unknown[]): number {
  return Array.isArray(data) ? bodyBytes(data) : (data as { byteLength: number }).byteLength;
}
