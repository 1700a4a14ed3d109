/** How long an envelope may be, by the sender's role: decoding it takes memory. */
import type { Identity } from "../../actors/runtime/identity.ts";

/**
 * Limit of an envelope's bytes from a client or viewer: a sharding policy's text and long lists
 * fit. Decoded values may take a hundred times the bytes of an envelope. Payloads do not count.
 */
const CLIENT_ENVELOPE_BYTES_MAX = 4 * 2 ** 20;
/** Limit of an envelope's bytes from a worker: the figures of ten thousand tasks fit. */
const WORKER_ENVELOPE_BYTES_MAX = 16 * 2 ** 20;
/** By role. An admin has no limit: it may end the process anyway. */
export const ENVELOPE_BYTES_MAX: Readonly<Record<Identity["role"], number>> = {
  ...{ client: CLIENT_ENVELOPE_BYTES_MAX, viewer: CLIENT_ENVELOPE_BYTES_MAX },
  ...{ worker: WORKER_ENVELOPE_BYTES_MAX, admin: Infinity },
};
