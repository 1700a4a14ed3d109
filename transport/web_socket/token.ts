/**
 * The token that opens a server, in the header of the upgrade.
 *
 * @module
 */
import { nodeCrypto } from "../../core/builtins.ts";
import { LeatError } from "../../core/error.ts";

const SCHEME = "Bearer ";

/** What a header can carry as one word. */
const TOKEN = /^[\x21-\x7e]{1,4096}$/;

/** @throws LeatError `invalid_argument` for a token that no header can carry. */
export function checkToken(token: string): void {
  if (TOKEN.test(token)) return;
  throw new LeatError(
    "invalid_argument",
    "A token has 1 to 4096 printable ASCII characters without spaces; " +
      "is there more than one line in its file, or a line break that was not trimmed?",
  );
}

/** The value of the `authorization` header that carries the token. */
export function bearer(token: string): string {
  return SCHEME + token;
}

/** Whether the header carries the token. */
export function carriesToken(header: string | null, token: string): boolean {
  return isSecret(header ?? "", bearer(token));
}

/**
 * Whether a text is the secret. How long it takes says nothing about how much of a wrong one was right.
 */
export function isSecret(text: string, secret: string): boolean {
  return nodeCrypto().timingSafeEqual(digest(text), digest(secret));
}

function digest(text: string): Uint8Array {
  return nodeCrypto().createHash("sha256").update(text).digest();
}
