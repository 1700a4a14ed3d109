/** A port of this machine without a listener. */

/**
 * The system never assigns a port below 1024. A port that was free a moment ago could belong to
 * another test by now.
 */
export const CLOSED_PORT = 1;
