/**
 * What every carrier bounds, and by how much.
 *
 * @module
 */
import { LeatError } from "../core/error.ts";
import { RaggedTensor, Tensor } from "../core/tensor.ts";
import type { Envelope } from "../actors/runtime/envelope.ts";
import { MESSAGE_BYTES_MAX } from "./codec.ts";
import { Payload } from "./payload.ts";

/** Bounds of one link; what is left out has a default. */
export interface LinkLimits {
  /** A larger message is refused with `resource_exhausted`. Default 1 GiB. */
  readonly messageBytesMax: number;
  /** From here on `ready()` waits. Default 16 MiB. */
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

/** What a small message takes beside its body: names, numbers and bookkeeping, roughly. */
const ENVELOPE_BYTES = 256;

/** Why a message of that size is refused. */
export function messageTooLarge(envelope: Envelope, bytes: number, bytesMax: number): LeatError {
  const what = "method" in envelope ? `"${envelope.method}"` : envelope.kind;
  return new LeatError(
    "resource_exhausted",
    `Message ${what} for ${envelope.target.node}${envelope.target.path} has ${bytes} bytes, over ` +
      `the link's limit of ${bytesMax}; send smaller batches or raise messageBytesMax`,
    { details: { bytes, bytesMax } },
  );
}

/** About how many bytes an envelope takes, for carriers that never write it down. */
export function envelopeBytes(envelope: Envelope): number {
  return ENVELOPE_BYTES + ("body" in envelope ? bodyBytes(envelope.body) : 0);
}

/** About how many bytes a body takes, or a part of one. */
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
