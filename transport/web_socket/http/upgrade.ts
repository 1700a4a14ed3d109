/** Upgrades a connection to a WebSocket (RFC 6455, section 4), as the client. */
import { Buffer } from "node:buffer";
import type { Random } from "../../../actors/runtime/world.ts";
import { nodeCrypto } from "../../../core/builtins.ts";
import type { DiallerSide } from "../tokens/proof.ts";
import { SPEAKS_TLS, TLS_ALERT } from "../remedies.ts";
import { broken } from "../socket_frames.ts";
import { writeAll } from "../connection.ts";
import { headersOf } from "./headers.ts";

const RESPONSE_BYTES_MAX = 16_384;
/** The RFC's own constant. */
const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Limit of the bytes of a refusal's body, which is skipped before the next request. */
const REFUSAL_BYTES_MAX = 4_096;

/** The server answered, but refused the upgrade. */
export class UpgradeRefused extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`HTTP ${status}`);
    this.status = status;
  }
}

/** The server accepted the upgrade, but did not prove that it knows the token. */
export class NotProved extends Error {
  constructor() {
    super("it does not prove that it knows the token");
  }
}

/**
 * Requests the upgrade; with a token, both sides prove that they know it.
 * @param side Proves the token for this side; omitted if there is none.
 * @returns The bytes after the server's response: its first frames.
 * @throws UpgradeRefused with the HTTP status when the server refuses; NotProved when it does not
 * know the token; LeatError `failed_precondition` when it speaks another version.
 */
export async function upgrade(
  conn: Deno.Conn,
  url: URL,
  side: DiallerSide | undefined,
  randomState: Random,
): Promise<Uint8Array> {
  const key = Buffer.from(randomState.hex64() + randomState.hex64(), "hex").toString("base64");
  const first = await exchange(conn, requestText(url, key, []));
  const challenge = first.status === 401 ? first.headers.get("www-authenticate") : null;
  const answer = side?.answer(challenge ?? "");
  if (side === undefined || answer === undefined) {
    const rest = consented(first, key);
    // A server that requires no proof gives none.
    if (side !== undefined) throw new NotProved();
    return rest;
  }
  await skipBody(conn, first);
  const second = await exchange(conn, requestText(url, key, [`authorization: ${answer}`]));
  const rest = consented(second, key);
  if (!side.isProved(second.headers.get("authentication-info"))) throw new NotProved();
  return rest;
}

/** The head of an answer, and the bytes after it. */
interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly rest: Uint8Array;
}

/** Writes a request, and reads the head of its answer. */
async function exchange(conn: Deno.Conn, request: string): Promise<Answer> {
  await writeAll(conn, new TextEncoder().encode(request));
  const bytes = new Uint8Array(RESPONSE_BYTES_MAX);
  let length = 0;
  while (length < bytes.length) {
    const count = await conn.read(bytes.subarray(length));
    if (count === null) {
      const isTls = length > 0 && bytes[0] === TLS_ALERT;
      throw new Error(isTls ? SPEAKS_TLS : "it closed the connection before it answered");
    }
    length += count;
    // Latin-1 keeps one character to a byte.
    const text = Buffer.from(bytes.buffer, 0, length).toString("latin1");
    const end = text.indexOf("\r\n\r\n");
    if (end < 0) continue;
    return answerOf(text.slice(0, end), bytes.subarray(end + 4, length));
  }
  throw broken(`an answer of more than ${RESPONSE_BYTES_MAX} bytes to the upgrade`);
}

function answerOf(text: string, rest: Uint8Array): Answer {
  const [statusLine = "", ...lines] = text.split("\r\n");
  const status = /^HTTP\/1\.[01] (\d{3})( |$)/.exec(statusLine)?.[1];
  if (status === undefined) throw broken("what listens there does not speak HTTP");
  const headers = headersOf(lines);
  if (headers === undefined) throw broken("an invalid header in the answer to the upgrade");
  return { status: Number(status), headers, rest };
}

/** Reads the body of a refusal, so that the connection can serve the next request. */
async function skipBody(conn: Deno.Conn, { headers, rest }: Answer): Promise<void> {
  const length = Number(headers.get("content-length") ?? NaN);
  if (!(length >= rest.length && length <= REFUSAL_BYTES_MAX)) {
    throw broken("a refusal whose length is missing, too large or wrong");
  }
  const left = new Uint8Array(length - rest.length);
  for (let at = 0; at < left.length;) {
    const count = await conn.read(left.subarray(at));
    if (count === null) throw new Error("it closed the connection before it answered");
    at += count;
  }
}

function requestText(url: URL, key: string, headers: readonly string[]): string {
  return [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `host: ${url.host}`,
    "upgrade: websocket",
    "connection: Upgrade",
    `sec-websocket-key: ${key}`,
    "sec-websocket-version: 13",
    ...headers,
    "\r\n",
  ].join("\r\n");
}

/** The server's answer to the key of an upgrade. */
export function acceptOf(key: string): string {
  return nodeCrypto().createHash("sha1").update(key + ACCEPT_SUFFIX).digest("base64");
}

/** The bytes after the server's acceptance. */
function consented({ status, headers, rest }: Answer, key: string): Uint8Array {
  if (status !== 101) throw new UpgradeRefused(status);
  if (headers.get("sec-websocket-accept") === acceptOf(key)) return rest;
  throw broken("an upgrade that does not answer this one");
}
