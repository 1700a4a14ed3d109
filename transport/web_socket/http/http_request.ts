/**
 * Reads the head of an HTTP request, which has no body, and writes the answer. A connection has one
 * request, or two if the first is answered with a challenge.
 *
 * Deno's server is not used: it ends for good when the process has no file handle left for a
 * connection, waits forever for a head that never ends, and cannot drop a connection that has sent
 * no request yet.
 */
import { Buffer } from "node:buffer";
import { type Conn, writeAll } from "../connection.ts";
import { headersOf } from "./headers.ts";

/** A longer head is refused. */
const HEAD_BYTES_MAX = 16_384;
/** The first read of a head; most are shorter. */
const HEAD_BYTES = 1_024;

/** The target may be a whole URL, as a proxy gets it (RFC 9112, section 3.2.2). */
const REQUEST_LINE =
  /^([A-Z]{1,16}) (?:http:\/\/([\x21-\x2e\x30-\x7e]+))?(\/[\x21-\x7e]*) HTTP\/1\.([01])$/;

export interface RequestHead {
  readonly method: string;
  /** With the host that the request names. */
  readonly url: URL;
  readonly headers: Headers;
}

/** A head, and the bytes after it. */
interface ReadRequest {
  readonly head: RequestHead;
  readonly rest: Uint8Array;
}

/** An invalid request; the status names the fault. */
export class NoRequest extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Reads the head of a request; `undefined` if the other side closes first. @throws NoRequest */
export async function readRequest(conn: Conn): Promise<ReadRequest | undefined> {
  let bytes = new Uint8Array(HEAD_BYTES);
  let length = 0;
  for (;;) {
    if (length === bytes.length) bytes = larger(bytes);
    const count = await conn.read(bytes.subarray(length));
    if (count === null) return undefined;
    // A client of another protocol, such as TLS, may wait for an answer before it sends more.
    if (!isCapital(bytes[0]!)) throw new NoRequest(400, "This is not an HTTP request.");
    // The end of the head may have begun in the earlier bytes.
    const from = Math.max(0, length - 3);
    length += count;
    const end = Buffer.from(bytes.buffer, 0, length).indexOf("\r\n\r\n", from);
    if (end < 0) continue;
    const text = Buffer.from(bytes.buffer, 0, end).toString("latin1");
    return { head: parseHead(text), rest: bytes.subarray(end + 4, length) };
  }
}

function isCapital(byte: number): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}

function larger(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (bytes.length >= HEAD_BYTES_MAX) {
    throw new NoRequest(431, `A request's head has at most ${HEAD_BYTES_MAX} bytes.`);
  }
  const more = new Uint8Array(Math.min(2 * bytes.length, HEAD_BYTES_MAX));
  more.set(bytes);
  return more;
}

/** @throws NoRequest */
export function parseHead(text: string): RequestHead {
  const [first = "", ...lines] = text.split("\r\n");
  const [, method, authority, target, minor] = REQUEST_LINE.exec(first) ?? [];
  if (method === undefined || target === undefined) {
    throw new NoRequest(400, "This is not an HTTP request.");
  }
  const headers = headersOf(lines);
  if (headers === undefined) throw new NoRequest(400, "No valid header.");
  // Health probes that speak HTTP/1.0 name no host.
  const host = headers.get("host") || (minor === "0" ? "localhost" : "");
  const url = URL.parse(`http://${authority ?? host}${target}`);
  if (host === "" || url === null || url.username !== "" || url.password !== "") {
    throw new NoRequest(400, "No valid host.");
  }
  return { method, url, headers };
}

interface WriteOptions {
  /** Of the request: an answer to HEAD has no body. */
  readonly method: string;
  /** In place of the body of the response. */
  readonly body?: Uint8Array | undefined;
  /** Whether another request may follow. Default: the connection is closed. */
  readonly isOpen?: boolean;
}

/** Writes a whole answer. */
export async function writeResponse(
  conn: Conn,
  response: Response,
  { method, isOpen = false, ...options }: WriteOptions,
): Promise<void> {
  const body = options.body ?? new Uint8Array(await response.arrayBuffer());
  const headers = new Headers(response.headers);
  headers.set("content-length", String(body.length));
  const connection = [...(isOpen ? [] : ["close"]), ...(headers.has("upgrade") ? ["upgrade"] : [])];
  if (connection.length > 0) headers.set("connection", connection.join(", "));
  await writeAll(conn, headBytes(response.status, headers));
  if (method !== "HEAD") await writeAll(conn, body);
}

export async function writeUpgrade(
  conn: Conn,
  accept: string,
  more: Readonly<Record<string, string>>,
): Promise<void> {
  const headers = new Headers({
    ...more,
    "upgrade": "websocket",
    "connection": "Upgrade",
    "sec-websocket-accept": accept,
  });
  await writeAll(conn, headBytes(101, headers));
}

function headBytes(status: number, headers: Headers): Uint8Array {
  const fields = [...headers].map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(
    `HTTP/1.1 ${status} ${REASONS[status] ?? ""}\r\n${fields.join("")}\r\n`,
    "latin1",
  );
}

const REASONS: Readonly<Record<number, string>> = {
  101: "Switching Protocols",
  200: "OK",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  421: "Misdirected Request",
  426: "Upgrade Required",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  503: "Service Unavailable",
};
