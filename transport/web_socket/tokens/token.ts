/** Tokens: their form, and which of them a listener accepts. */
import type { Identity } from "../../../actors/runtime/identity.ts";
import { LeatError } from "../../../core/error.ts";
import { idOf, isSameProof, keyedHash } from "./proof.ts";

/** Schemes have no case (RFC 9110, section 11.1). */
const BEARER = /^Bearer +([^ ]+)$/i;

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

/** A token, and the identity of its holder. */
export interface NamedToken {
  readonly token: string;
  readonly identity: Identity;
}

/** The tokens that a listener accepts now. */
export interface AcceptedTokens {
  /** The token of that id ({@linkcode idOf}). */
  find(id: string): NamedToken | undefined;
  /** Calls back when the accepted tokens change; returns a function to stop. Omitted if they never do. */
  whenChanged?(changed: () => void): () => void;
}

/** A token by its id, and the identity that it had when it was proved. */
export interface ProvedToken {
  /** Undefined if no token was proved, or one that is never withdrawn. */
  readonly tokenId?: string;
  readonly identity: Identity;
}

/** Why a proved token is no longer accepted with its name and role; undefined if it still is. */
export function withdrawalOf(
  tokens: AcceptedTokens | undefined,
  { tokenId, identity: { name, role } }: ProvedToken,
): LeatError | undefined {
  if (tokenId === undefined) return undefined;
  const now = tokens?.find(tokenId)?.identity;
  if (now?.name === name && now.role === role) return undefined;
  const what = now === undefined
    ? "was withdrawn"
    : now.name === name
    ? `has the role ${now.role} now, and had the role ${role}`
    : `belongs to "${now.name}" now`;
  return new LeatError("unauthenticated", `The token of "${name}" ${what}`);
}

export class TokenSet implements AcceptedTokens {
  readonly #byId: ReadonlyMap<string, NamedToken>;

  /** If two entries have the same token, the first one counts. */
  constructor(tokens: Iterable<NamedToken>) {
    const byId = new Map<string, NamedToken>();
    for (const named of tokens) {
      checkToken(named.token);
      const id = idOf(named.token);
      if (!byId.has(id)) byId.set(id, named);
    }
    this.#byId = byId;
  }

  find(id: string): NamedToken | undefined {
    return this.#byId.get(id);
  }
}

export function holderOf(tokens: AcceptedTokens, text: string): NamedToken | undefined {
  const known = tokens.find(idOf(text));
  return known !== undefined && isSecret(text, known.token) ? known : undefined;
}

export function bearerOf(header: string | null): string | undefined {
  return BEARER.exec(header ?? "")?.[1];
}

/** Whether a text is the secret, compared in constant time. */
function isSecret(text: string, secret: string): boolean {
  return isSameProof(keyedHash("", text), keyedHash("", secret));
}
