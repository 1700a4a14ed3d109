/**
 * TLS on an accepted TCP connection.
 *
 * With `Deno.listenTls`, a connection that is closed during its handshake keeps its file until the
 * other side closes, so strangers could use up all files of the process. But for large messages
 * `Deno.listenTls` is several times as fast.
 */
import { Duplex } from "node:stream";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import { closeConnection, type Conn, writeAll } from "../connection.ts";

/** Bytes read at a time: the longest record of TLS, and its head. */
const READ_BYTES = 2 ** 14 + 256;

/** A fatal alert (RFC 8446, section 6). It tells a client without TLS that TLS is needed. */
const ALERT = new Uint8Array([0x15, 3, 3, 0, 2, 2, 10]);

/** The server's side of TLS on a connection that was accepted. */
export function securedBy(
  pair: { readonly cert: string; readonly key: string },
): (conn: Deno.Conn) => Conn {
  const context = createSecureContext({ ...pair, minVersion: "TLSv1.2" });
  return (conn) => new TlsConn(conn, context);
}

class TlsConn implements Conn {
  readonly remoteAddr: Deno.Addr;
  readonly #conn: Deno.Conn;
  readonly #tls: TLSSocket;
  #failure: Error | undefined;
  #isSecure = false;
  #isEnded = false;
  #wake = () => {};

  constructor(conn: Deno.Conn, secureContext: SecureContext) {
    this.#conn = conn;
    this.remoteAddr = conn.remoteAddr;
    this.#tls = new TLSSocket(streamOf(conn), { isServer: true, secureContext });
    this.#tls.on("secure", () => this.#isSecure = true);
    this.#tls.on("readable", () => this.#wake());
    this.#tls.on("end", () => this.#end());
    this.#tls.on("error", (error) => this.#end(error));
    this.#tls.on("close", () => this.#end());
  }

  #end(error?: Error): void {
    this.#failure ??= error;
    this.#isEnded = true;
    this.#wake();
  }

  async read(into: Uint8Array): Promise<number | null> {
    for (;;) {
      const count = Math.min(into.length, this.#tls.readableLength);
      // Without data, too: only a further `read` makes Node report the end after the last bytes.
      const bytes: Uint8Array | null = this.#tls.read(count);
      if (bytes !== null) {
        into.set(bytes);
        return bytes.length;
      }
      if (this.#failure !== undefined) {
        if (!this.#isSecure) await this.#conn.write(ALERT).catch(() => {});
        throw this.#failure;
      }
      if (this.#isEnded) return null;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  write(bytes: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#tls.write(bytes, (error) => {
        if (error) reject(this.#failure ?? error);
        else resolve(bytes.length);
      });
    });
  }

  closeWrite(): Promise<void> {
    return new Promise((resolve) => this.#tls.end(resolve));
  }

  close(): void {
    closeConnection(this.#conn);
    this.#tls.destroy();
  }
}

/** The connection's encrypted bytes as a Node stream. */
function streamOf(conn: Deno.Conn): Duplex {
  const stream = new Duplex({
    read() {
      const bytes = new Uint8Array(READ_BYTES);
      conn.read(bytes).then(
        (count) => this.push(count === null ? null : bytes.subarray(0, count)),
        (error) => this.destroy(error),
      );
    },
    write(bytes: Uint8Array, _encoding, done) {
      writeAll(conn, bytes).then(() => done(), done);
    },
    final(done) {
      conn.closeWrite().then(() => done(), done);
    },
  });
  // The `TLSSocket` reports the error.
  stream.on("error", () => {});
  return stream;
}
