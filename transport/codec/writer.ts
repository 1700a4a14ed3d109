/**
 * The writer of envelopes, and the only module that uses msgpackr: a walk over the value plans the
 * input of msgpackr and the payloads after it, then msgpackr writes.
 */

import { Buffer } from "node:buffer";
// The subpath resolves to the plain JavaScript build; the package's root reads the environment and
// tries to load a native helper.
import { addExtension, Packr, RESERVE_START_SPACE, RESET_BUFFER_MODE } from "msgpackr/pack";
import { MESSAGE_HEADER_BYTES, TOKEN } from "./format.ts";
import { MessagePlan, type PayloadPart, RawMsgpack } from "./plan.ts";

/** A written envelope, and the payloads after it. */
export interface WrittenEnvelope {
  /**
   * The message's header and envelope: a view of msgpackr's pool, which its next call overwrites.
   */
  readonly bytes: Uint8Array;
  /** In the order in which the envelope names them. */
  readonly parts: readonly PayloadPart[];
}

/**
 * Writes a message's header and its envelope, which the caller must copy at once.
 * @throws {LeatError} `invalid_argument` naming the path of a value that cannot be sent.
 */
export function writeEnvelope(value: unknown): WrittenEnvelope {
  const plan = new MessagePlan();
  const bytes = packr.pack(plan.envelope(value), PACK_MODE);
  bytes[0] = TOKEN.UINT32;
  bytes.writeUInt32BE(bytes.length - MESSAGE_HEADER_BYTES, 1);
  if (bytes.length > POOL_BYTES_MAX) packr.useBuffer(Buffer.allocUnsafeSlow(POOL_BYTES));
  return { bytes, parts: plan.parts };
}

const PACK_MODE = RESERVE_START_SPACE | RESET_BUFFER_MODE | MESSAGE_HEADER_BYTES;

/** `variableMapSize`: without it, an object of more than 65,535 keys gets a wrong length. */
const packr = new Packr({ useRecords: false, variableMapSize: true });

/** msgpackr keeps the buffer of its largest envelope; after a larger one it gets a new buffer. */
const POOL_BYTES_MAX = 2 ** 20;
const POOL_BYTES = 8192;

// Extensions of msgpackr are global to the process, which may use msgpackr itself. So Leat claims
// one private class and no type number: one is required, and 256 does not fit a byte.
addExtension(
  {
    Class: RawMsgpack,
    type: 256,
    pack(raw: RawMsgpack, allocate: AllocateForWrite) {
      const { bytes, array } = raw;
      const { target, position } = allocate(bytes.length + (array?.length ?? 0));
      for (let i = 0; i < bytes.length; i++) target[position + i] = bytes[i]!;
      if (array !== undefined) target.set(array, position + bytes.length);
    },
  } as unknown as Parameters<typeof addExtension>[0],
);

/** The argument of an extension's `pack` that msgpackr's types leave out. */
type AllocateForWrite = (bytes: number) => { target: Uint8Array; position: number };
