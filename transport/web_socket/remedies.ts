/** Remedies for servers that do not answer as expected, for WebSocket and plain HTTP. */
import { LeatError } from "../../core/error.ts";

/** The first byte of a server that accepts only TLS: an alert (RFC 8446, section 5.1). */
export const TLS_ALERT = 0x15;
/** The error of a connection without TLS to such a server. */
export const SPEAKS_TLS = "the server there accepts only TLS";

/** Deno's messages when only one side uses TLS. There is nothing but their text to match. */
const PLAIN_AT_TLS = new RegExp(`${SPEAKS_TLS}|invalid HTTP version`, "i");
const TLS_AT_PLAIN = /InvalidContentType/;

/** Deno's messages about the certificate of another server, with remedies. */
const PEER_REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/pem file/, "the authorities that this program was given are damaged (ca, --ca)"],
  [
    /not valid for name|NotValidForName/,
    "name this host in the server's certificate (subjectAltName), or let the server advertise a name " +
    "that is in it (--advertise)",
  ],
  [/expired/i, "renew the server's certificate, and start the server again"],
  [/UnknownIssuer|BadSignature/, "pass the authority that signed its certificate (--ca)"],
];

/**
 * The remedy for a TLS failure; undefined for any other.
 * @param address The dialled address: `ws://host:port` or `wss://host:port`.
 * @param why The error message.
 */
export function tlsRemedy(address: string, why: string): string | undefined {
  const isEncrypted = /^(wss|https):/i.test(address);
  if (isEncrypted && /certificate/i.test(why)) {
    return PEER_REMEDIES.find(([pattern]) => pattern.test(why))?.[1] ??
      "the server there needs another certificate (--cert)";
  }
  if (isEncrypted && TLS_AT_PLAIN.test(why)) {
    return "it seems to have no certificate; then its address begins with ws://";
  }
  if (!isEncrypted && PLAIN_AT_TLS.test(why)) {
    return "it seems to have a certificate; then its address begins with wss://";
  }
  return undefined;
}

/** The error for a node that answers at the address of another. */
export function anotherNode(address: string): LeatError {
  return new LeatError(
    "failed_precondition",
    `Another node answers at ${address}: two advertise the same address, or it leads elsewhere from ` +
      "here; set the address by which others reach it (--advertise)",
  );
}

/** Deno's messages about an unusable certificate or key of a server, with remedies. */
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

/** The remedy for an unusable certificate; undefined for other failures of listening. */
export function certificateRemedy(why: string): string | undefined {
  return CERTIFICATE_REMEDIES.find(([pattern]) => pattern.test(why))?.[1];
}
