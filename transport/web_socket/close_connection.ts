/** Closes a connection, which a deadline or a stopping server may have closed already. */
export function closeConnection(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}
