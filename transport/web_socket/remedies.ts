/**
 * What to do about a server that does not answer as it should: for all who dial one, by WebSocket or
 * by plain HTTP.
 *
 * @module
 */

/** What the first byte of a server says that refuses to speak anything but TLS: an alert (RFC 8446, section 5.1). */
export const TLS_ALERT = 0x15;
/** Why a connection without TLS to such a server does not come about. */
export const SPEAKS_TLS = "what listens there speaks TLS alone";

/** Who dials, what the platform says where the one has TLS and the other has not. Its words are all there is. */
const PLAIN_AT_TLS = new RegExp(`${SPEAKS_TLS}|invalid HTTP version`, "i");
const TLS_AT_PLAIN = /InvalidContentType/;

/**
 * What to do about a failure that has to do with TLS; undefined for any other.
 *
 * @param address Who was dialled: `ws://host:port` or `wss://host:port`.
 * @param why What was said of it.
 */
export function tlsRemedy(address: string, why: string): string | undefined {
  const isEncrypted = /^(wss|https):/i.test(address);
  if (isEncrypted && /certificate/i.test(why)) {
    return "pass the authority that signed its certificate (--ca)";
  }
  if (isEncrypted && TLS_AT_PLAIN.test(why)) {
    return "it has no certificate, it seems: then its address begins with ws://";
  }
  if (!isEncrypted && PLAIN_AT_TLS.test(why)) {
    return "it has a certificate, it seems: then its address begins with wss://";
  }
  return undefined;
}
