/** The handshake of two nodes, and the message that closes a connection. */
import { LeatError, type WireError } from "../core/error.ts";
import type { NodeId } from "../actors/runtime/link.ts";
import { shownText } from "../core/shown_text.ts";
import { decodeMessage, encodeMessage } from "./codec.ts";

export const PROTOCOL_VERSION = 1;

/** Limit of the bytes of a connection's first message. */
export const HELLO_BYTES_MAX = 4_096;

/**
 * Every side accepts messages of this size. A side with a lower limit could not even receive the
 * errors of its requests.
 */
const ACCEPTED_BYTES_MIN = 64 * 2 ** 10;

/** Characters of another version of the protocol that an error shows. */
const VERSION_SHOWN = 32;

/** Limit of the characters of a node's name, and of its incarnation. */
const NAME_LENGTH_MAX = 1_024;

/** The side that opened the connection, or the one that was listening. */
export type LinkSide = "dialler" | "listener";

/** The first message of either side. */
export interface Hello extends NodeId {
  readonly role: LinkSide;
  /** The largest message that this side accepts: at least {@linkcode ACCEPTED_BYTES_MIN}. */
  readonly messageBytesMax: number;
  /** How many slots this side reads in place. Default: two, and it copies messages out of them. */
  readonly slots?: number;
  /** The listener's private folder: processes of its host and user may share slots with it. */
  readonly near?: string;
}

/** Encodes the first message of this side. */
export function writeHello(hello: Hello): Uint8Array<ArrayBuffer> {
  const { role, node, incarnation, messageBytesMax, slots, near } = hello;
  const version = PROTOCOL_VERSION;
  const fields = { version, role, node, incarnation, messageBytesMax, slots, near };
  return encodeMessage({ kind: "hello", ...fields });
}

/** Encodes the last message of a side that closes a connection, with the reason. */
export function writeBye(reason: LeatError): Uint8Array<ArrayBuffer> {
  const { code, message, details } = reason.toWire();
  return encodeMessage({ kind: "bye", error: { code, message, details } });
}

/** The reason in a decoded goodbye message; `undefined` for other messages. */
export function byeReason(message: unknown): LeatError | undefined {
  const bye = message as { kind?: unknown; error?: unknown } | null;
  if (typeof bye !== "object" || bye?.kind !== "bye") return undefined;
  const { error } = bye;
  if (typeof error === "object" && error !== null) return LeatError.fromWire(error as WireError);
  return new LeatError("unavailable", "The other side closed the connection and gave no reason");
}

/** The reason of the other side, which has said goodbye in place of its hello. */
export class RefusedByPeer extends LeatError {}

/**
 * Reads the first message of the other side.
 * @throws LeatError `failed_precondition` for another version of the protocol, {@linkcode
 * RefusedByPeer} for a goodbye, `invalid_argument` for anything that is no hello.
 */
export function readHello(data: Uint8Array | string, from: LinkSide): Hello {
  if (typeof data === "string") throw notHello("it is text");
  if (data.length > HELLO_BYTES_MAX) {
    throw notHello(`it has ${data.length} bytes, more than ${HELLO_BYTES_MAX}`);
  }
  const message = decodeMessage(data) as Record<string, unknown> | null;
  const reason = byeReason(message);
  if (reason !== undefined) throw new RefusedByPeer(reason.code, reason.message, reason);
  if (typeof message !== "object" || message?.kind !== "hello") throw notHello("it has no kind");
  const { version, role, node, incarnation, messageBytesMax, slots, near } = message;
  if (version !== PROTOCOL_VERSION) throw otherVersion(from, version);
  if (role !== from) throw notHello(`its role is ${shownText(String(role))}, not ${from}`);
  if (!isName(node) || !isName(incarnation)) throw notHello("it names no node");
  if (typeof messageBytesMax !== "number" || !(messageBytesMax > 0)) {
    throw notHello("it has no messageBytesMax");
  }
  if (messageBytesMax < ACCEPTED_BYTES_MIN) {
    throw notHello(
      `its messageBytesMax is ${messageBytesMax}; every node accepts messages of ${ACCEPTED_BYTES_MIN} bytes`,
    );
  }
  if (slots !== undefined && !(Number.isInteger(slots) && slots as number > 0)) {
    throw notHello("its slots are no positive number");
  }
  return {
    ...{ role: from, node, incarnation, messageBytesMax },
    ...(slots === undefined ? {} : { slots: slots as number }),
    ...(isName(near) ? { near } : {}),
  };
}

/** The error for two ends with different versions of the protocol. */
export function otherVersion(from: LinkSide, version: unknown): LeatError {
  return new LeatError(
    "failed_precondition",
    `The ${from} speaks version ${
      shownText(String(version).slice(0, VERSION_SHOWN))
    } of the protocol, the other side version ${PROTOCOL_VERSION}; run the same release of Leat on both`,
    { details: { reason: "protocol_version", versions: [PROTOCOL_VERSION] } },
  );
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= NAME_LENGTH_MAX;
}

function notHello(why: string): LeatError {
  return new LeatError("invalid_argument", `The first message of a connection is a hello: ${why}`);
}
