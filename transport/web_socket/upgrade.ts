/**
 * How a connection becomes a WebSocket (RFC 6455, section 4), from the client's side.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { Random } from "../../actors/runtime/world.ts";
import { nodeCrypto } from "../../core/builtins.ts";
import { broken } from "./socket_frames.ts";
import { SPEAKS_TLS, TLS_ALERT } from "./remedies.ts";
import { writeAll } from "./write_all.ts";

/** What a server may say before it is a WebSocket. */
const RESPONSE_BYTES_MAX = 16_384;
/** The RFC's own constant. */
const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** The server answered, but not by becoming a WebSocket. */
export class UpgradeRefused extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`HTTP ${status}`);
    this.status = status;
  }
}

/**
 * Asks for the upgrade.
 *
 * @returns The bytes that came after the server's consent: its first frames.
 * @throws UpgradeRefused with the HTTP status when the server says no.
 */
export async function upgrade(
  conn: Deno.Conn,
  url: URL,
  headers: Readonly<Record<string, string>>,
  luck: Random,
): Promise<Uint8Array> {
  const key = Buffer.from(luck.hex64() + luck.hex64(), "hex").toString("base64");
  await writeAll(conn, new TextEncoder().encode(requestText(url, key, headers)));
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
    checkResponse(text.slice(0, end), key);
    return bytes.subarray(end + 4, length);
  }
  throw broken(`an answer of more than ${RESPONSE_BYTES_MAX} bytes to the upgrade`);
}

function requestText(url: URL, key: string, headers: Readonly<Record<string, string>>): string {
  return [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `host: ${url.host}`,
    "upgrade: websocket",
    "connection: Upgrade",
    `sec-websocket-key: ${key}`,
    "sec-websocket-version: 13",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "\r\n",
  ].join("\r\n");
}

/** What a server says to an upgrade that came with that key. */
export function acceptOf(key: string): string {
  return nodeCrypto().createHash("sha1").update(key + ACCEPT_SUFFIX).digest("base64");
}

function checkResponse(text: string, key: string): void {
  const [statusLine = "", ...lines] = text.split("\r\n");
  const status = /^HTTP\/1\.[01] (\d{3})( |$)/.exec(statusLine)?.[1];
  if (status === undefined) throw broken("what listens there does not speak HTTP");
  if (status !== "101") throw new UpgradeRefused(Number(status));
  const accept = acceptOf(key);
  const accepted = lines.some((line) => {
    const [name = "", value = ""] = line.split(/:\s*/, 2);
    return name.toLowerCase() === "sec-websocket-accept" && value.trim() === accept;
  });
  if (!accepted) throw broken("an upgrade that does not answer this one");
}
