/**
 * Mutual proof that both sides of a connection know a token, without sending the token: each side
 * answers a fresh nonce of the other with a keyed hash (HMAC-SHA-256, RFC 2104). `docs/wire.md`
 * specifies the bytes.
 */
import { Buffer } from "node:buffer";
import { nodeCrypto } from "../../../core/builtins.ts";
import { otherVersion, PROTOCOL_VERSION } from "../../hello.ts";

/**
 * What the dialler wants to reach: a `service` at a configured address, or the `node` whose name is
 * that address. A proof for a node is valid at no other node.
 */
export type Target = "service" | "node";

/** The data that both proofs of a connection cover. */
export interface Transcript {
  /** See {@linkcode idOf}. */
  readonly id: string;
  readonly diallerNonce: string;
  readonly listenerNonce: string;
  readonly target: Target;
  /** The listener's address as the dialler knows it: `ws://host:port`. */
  readonly address: string;
}

/** The dialler's message. */
export interface DiallerProof extends Transcript {
  readonly version: number;
  readonly proof: string;
}

const NONCE_BYTES = 32;
const SCHEME = "Leat";
const HEX64 = "[0-9a-f]{64}";
const CHALLENGE = new RegExp(`(?:^|,\\s*)${SCHEME} version=(\\d{1,9}), nonce=(${HEX64})(?:,|$)`);
const ANSWER = new RegExp(
  `^${SCHEME} version=(\\d{1,9}), id=([0-9a-f]{16}), nonce=(${HEX64}), ` +
    `listener-nonce=(${HEX64}), proof=(${HEX64}), target=(service|node), address=([!-~]{1,2048})$`,
);
const RECEIPT = new RegExp(`^proof=(${HEX64})$`);

/** A nonce: 32 random bytes in hexadecimal. */
export function newNonce(): string {
  return nodeCrypto().randomBytes(NONCE_BYTES).toString("hex");
}

/** The id of a token on the wire. It reveals nothing about a random token. */
export function idOf(token: string): string {
  return keyedHash(token, `leat/${PROTOCOL_VERSION}\nid`).slice(0, 16);
}

/** The keyed hash by which one end proves that it knows the token. */
export function proofOf(token: string, by: "dialler" | "listener", about: Transcript): string {
  const { id, diallerNonce, listenerNonce, target, address } = about;
  const lines = [by, id, diallerNonce, listenerNonce, target, address];
  return keyedHash(token, [`leat/${PROTOCOL_VERSION}`, ...lines].join("\n"));
}

/** The random part and the digest in the name of a node that does not listen. */
const DIALLER_NAME = /^(?:client|local-worker)-([0-9a-f]{16})-([0-9a-f]{16})$/;

/**
 * A name for a node that does not listen. With a token, no holder of another one may use the name:
 * servers check its digest.
 */
export function diallerName(
  kind: "client" | "local-worker",
  random: string,
  token: string | undefined,
): string {
  const name = `${kind}-${random}`;
  return token === undefined ? name : `${name}-${nameDigest(token, random)}`;
}

/** Whether a node's name has the digest of another token. */
export function isNameOfOther(node: string, token: string): boolean {
  const [, random, digest] = DIALLER_NAME.exec(node) ?? [];
  return random !== undefined && !isSameProof(digest!, nameDigest(token, random));
}

function nameDigest(token: string, random: string): string {
  return keyedHash(token, `leat/${PROTOCOL_VERSION}\nname\n${random}`).slice(0, 16);
}

/** Whether two proofs are the same, in constant time. */
export function isSameProof(one: string, other: string): boolean {
  return one.length === other.length &&
    nodeCrypto().timingSafeEqual(Buffer.from(one, "latin1"), Buffer.from(other, "latin1"));
}

export function keyedHash(key: string, text: string): string {
  return nodeCrypto().createHmac("sha256", key).update(text).digest("hex");
}

/** The header `www-authenticate` of a listener that requires a proof. */
export function challengeHeader(listenerNonce: string): string {
  return `${SCHEME} version=${PROTOCOL_VERSION}, nonce=${listenerNonce}`;
}

/** The dialler's side: answers a challenge, then checks that the listener knows the token. */
export class DiallerSide {
  readonly #token: string;
  readonly #target: Target;
  readonly #address: string;
  #about: Transcript | undefined;

  constructor(token: string, target: Target, address: string) {
    this.#token = token;
    this.#target = target;
    this.#address = address;
  }

  /**
   * The `authorization` that answers a `www-authenticate`; undefined if no proof is required.
   * @throws LeatError `failed_precondition` when the listener speaks another version.
   */
  answer(challenge: string): string | undefined {
    const [, version, listenerNonce] = CHALLENGE.exec(challenge) ?? [];
    if (listenerNonce === undefined) return undefined;
    if (Number(version) !== PROTOCOL_VERSION) throw otherVersion("listener", Number(version));
    const id = idOf(this.#token);
    const about: Transcript = {
      ...{ id, diallerNonce: newNonce(), listenerNonce },
      ...{ target: this.#target, address: this.#address },
    };
    this.#about = about;
    return `${SCHEME} version=${PROTOCOL_VERSION}, id=${id}, nonce=${about.diallerNonce}, ` +
      `listener-nonce=${listenerNonce}, proof=${proofOf(this.#token, "dialler", about)}, ` +
      `target=${about.target}, address=${about.address}`;
  }

  /** Whether the header `authentication-info` proves that the listener knows the token. */
  isProved(receipt: string | null): boolean {
    const [, proof] = RECEIPT.exec(receipt ?? "") ?? [];
    return this.#about !== undefined && proof !== undefined &&
      isSameProof(proof, proofOf(this.#token, "listener", this.#about));
  }
}

/** The header `authentication-info` with which the listener proves that it knows the token. */
export function receiptHeader(token: string, about: Transcript): string {
  return `proof=${proofOf(token, "listener", about)}`;
}

/** Reads the header `authorization` of a dialler; undefined if it does not answer a challenge. */
export function readAnswer(header: string | null): DiallerProof | undefined {
  const [, version, id, diallerNonce, listenerNonce, proof, target, address] =
    ANSWER.exec(header ?? "") ?? [];
  if (address === undefined) return undefined;
  return {
    version: Number(version),
    id: id!,
    diallerNonce: diallerNonce!,
    listenerNonce: listenerNonce!,
    proof: proof!,
    target: target as Target,
    address,
  };
}
