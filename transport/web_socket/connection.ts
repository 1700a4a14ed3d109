/** Writes to connections, and closes them. */

/** A connection of TCP, or of TLS. */
export type Conn = Pick<Deno.Conn, "read" | "write" | "closeWrite" | "close" | "remoteAddr">;

/** Writes all bytes: one `write` may accept fewer. */
export async function writeAll(conn: Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
}

/** Closes a connection, which a deadline or a stopping server may have closed already. */
export function closeConnection(conn: Conn): void {
  try {
    conn.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}
