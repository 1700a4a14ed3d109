/**
 * Writing to a connection.
 *
 * @module
 */

/** Writes all of it: one `write` may take less. */
export async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
}
