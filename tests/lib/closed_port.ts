/**
 * A port of this machine at which nobody listens.
 *
 * @module
 */

/**
 * The system gives no program a port below 1024 by itself. A port that was free a moment ago may be
 * another test's by now.
 */
export const CLOSED_PORT = 1;
