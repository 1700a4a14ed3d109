/** Certificates in PEM (RFC 7468). */

/** How each certificate in PEM begins. */
export const CERTIFICATE_BEGINNING = "-----BEGIN CERTIFICATE-----";

/** Whether a text holds a certificate: Deno accepts one without, and then trusts nobody more. */
export function hasCertificate(text: unknown): boolean {
  return typeof text === "string" && text.includes(CERTIFICATE_BEGINNING);
}
