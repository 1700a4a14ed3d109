/**
 * Closing a connection.
 *
 * @module
 */

/**
 * Closes a connection, which may be closed already: a deadline or a server that stops can close it
 * while somebody else still reads and then closes it, too.
 */
export function closeConnection(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}
