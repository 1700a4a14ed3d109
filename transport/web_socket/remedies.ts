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

/** What the platform says of a certificate and a key that a server cannot use, and what to do. */
const CERTIFICATE_REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /KeyMismatch/,
    "the key belongs to another certificate: give the one that this certificate was issued for; in a chain " +
    "this server's own certificate comes first",
  ],
  [
    /No keys found/,
    "give a private key in PEM without a passphrase (openssl pkey -in KEY -out PLAIN removes one)",
  ],
  [/No certificates found/, "give a certificate chain in PEM, not the key"],
  [/peer certificate/, "the certificate is damaged, or of a kind that TLS has no use for"],
];

/** What to do about a certificate that cannot be served; undefined for other failures of listening. */
export function certificateRemedy(why: string): string | undefined {
  return CERTIFICATE_REMEDIES.find(([said]) => said.test(why))?.[1];
}
