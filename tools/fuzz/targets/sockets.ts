/** Input from a TCP connection before it is a message: HTTP requests and WebSocket frames. */
import { FramedSocket } from "../../../transport/web_socket/framed_socket.ts";
import { NoRequest, readRequest } from "../../../transport/web_socket/http/http_request.ts";
import { clientFrame, OPCODE } from "../../../transport/web_socket/socket_frames.ts";
import { LeatError } from "../../../core/error.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import type { Target } from "../target.ts";

/** Errors of a link that is closed because of its peer. Any other error is unexpected. */
const REFUSALS = /^(Malformed frame|Not the WebSocket protocol): |^closed$/;
/** Bytes of one read of the connection. */
const READ_BYTES = 700;

const text = (value: string) => new TextEncoder().encode(value);

/** Makes a connection whose other side sends these bytes, reads nothing and closes. */
function connectionFrom(input: Uint8Array): Deno.Conn {
  let at = 0;
  const conn: Pick<Deno.Conn, "read" | "write" | "close"> = {
    read(into) {
      if (at === input.length) return Promise.resolve(null);
      const part = input.subarray(at, at + Math.min(READ_BYTES, into.length));
      into.set(part);
      at += part.length;
      return Promise.resolve(part.length);
    },
    write: (bytes) => Promise.resolve(bytes.length),
    close: () => {},
  };
  return conn as Deno.Conn;
}

/** Reads all messages until the connection ends. */
async function readSocket(input: Uint8Array): Promise<void> {
  const world = new DenoWorld({ logLevel: "off" });
  const closed = Promise.withResolvers<string | undefined>();
  const socket = new FramedSocket(world, connectionFrom(input), { first: new Uint8Array() });
  socket.listen({
    message: () => {},
    closed: (why, isByPeer) => closed.resolve(isByPeer ? undefined : why),
  });
  const why = await closed.promise;
  await socket.released;
  if (why === undefined) return;
  if (REFUSALS.test(why)) throw new LeatError("invalid_argument", why);
  throw new Error(why);
}

async function readHttp(input: Uint8Array): Promise<void> {
  try {
    const request = await readRequest(connectionFrom(input));
    void request?.head.headers.get("authorization");
  } catch (error) {
    if (!(error instanceof NoRequest)) throw error;
    throw new LeatError("invalid_argument", error.message);
  }
}

const binary = (length: number, key: number) =>
  clientFrame(OPCODE.BINARY, new Uint8Array(length), key);

/** Targets that read sockets. */
export const SOCKET_TARGETS: Readonly<Record<string, Target>> = {
  http: {
    help: "heads of HTTP requests",
    open: () => ({
      seeds: [
        text(
          "GET /actors HTTP/1.1\r\nHost: 127.0.0.1:5050\r\nUpgrade: websocket\r\n" +
            "Authorization: Bearer secret\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        ),
        text("HEAD /metrics?x=%00 HTTP/1.0\r\nHost: [::1]\r\n\r\nrest"),
      ],
      run: readHttp,
    }),
  },
  socket: {
    help: "WebSocket frames of a client",
    open: () => ({
      seeds: [
        Uint8Array.of(...binary(5, 0), ...binary(300, 7), ...clientFrame(0x9, text("ping"), 1)),
        Uint8Array.of(0x02, 0x83, 0, 0, 0, 0, 1, 2, 3, 0x80, 0x81, 0, 0, 0, 0, 4),
        Uint8Array.of(...binary(70_000, 0).subarray(0, 900)),
        clientFrame(0x8, Uint8Array.of(0x03, 0xe8, 0x78), 9),
      ],
      run: readSocket,
    }),
  },
};
