/** Closing a connection. */

/**
 * Closes a connection, which may be closed already: a deadline or a stopping server can close it
 * while its reader still runs and closes it again.
 */
export function closeConnection(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}
