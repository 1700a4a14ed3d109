/**
 * Decides which connections a listener admits, and with which identity. Others get HTTP 401, or 421
 * if they have proved a token and mean another node.
 */
import { ANYONE } from "../../../actors/runtime/identity.ts";
import type { World } from "../../../actors/runtime/world.ts";
import type { LeatError } from "../../../core/error.ts";
import {
  challengeHeader,
  type DiallerProof,
  isSameProof,
  keyedHash,
  newNonce,
  proofOf,
  readAnswer,
  receiptHeader,
} from "./proof.ts";
import {
  type AcceptedTokens,
  bearerOf,
  holderOf,
  type NamedToken,
  type ProvedToken,
  withdrawalOf,
} from "./token.ts";

/** How often refused connections are logged, in ms. */
const LOG_EVERY_MS = 10_000;

export interface Admission extends ProvedToken {
  /** Whether the client has proved or shown a token. */
  readonly isProved: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

interface AuthenticatorOptions {
  readonly world: World;
  /** If omitted, everybody is admitted. */
  readonly tokens: AcceptedTokens | undefined;
  /** The node's own name: a proof for a node must name this one. */
  readonly node: () => string;
  /** Whether users configure this node's address. If so, proofs for a service are valid here. */
  readonly isService: boolean;
}

/** Authenticates connections to a listener. */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #challenges: Challenges;
  #refusedCount = 0;
  #nextLogMs = -Infinity;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#challenges = new Challenges(options.world);
  }

  /** Checks a request to connect: the client must prove a token, and mean this node. */
  admit(headers: Headers): Admission | Response {
    const { tokens } = this.#options;
    if (tokens === undefined) return { identity: ANYONE, isProved: false, headers: {} };
    const answer = readAnswer(headers.get("authorization"));
    // A client without an answer first gets a challenge.
    if (answer === undefined) return this.#challenge();
    const named = tokens.find(answer.id);
    if (named === undefined) return this.#refuse("its token is not known here");
    const { token, identity } = named;
    const fault = this.#fault(named, answer);
    if (fault !== undefined) return this.#refuse(fault);
    if (!this.#isMeant(answer)) {
      const { target, address } = answer;
      this.#log(`"${identity.name}" meant to dial the ${target} ${address}`);
      return new Response("This is another node.\n", { status: 421 });
    }
    return {
      identity,
      tokenId: answer.id,
      isProved: true,
      headers: { "authentication-info": receiptHeader(token, answer) },
    };
  }

  /** Checks a request for a page: its token may also be in the header, or in the URL as `inUrl`. */
  admitToPage(headers: Headers, inUrl: string | undefined): Admission | Response {
    const { tokens } = this.#options;
    const shown = bearerOf(headers.get("authorization")) ?? inUrl;
    if (tokens === undefined || shown === undefined) return this.admit(headers);
    const named = holderOf(tokens, shown);
    return named === undefined
      ? this.#refuse("its token is not known here")
      : { identity: named.identity, isProved: true, headers: {} };
  }

  /** Why an admitted connection would not be admitted again; undefined if it would. */
  withdrawalOf(admission: Admission): LeatError | undefined {
    return withdrawalOf(this.#options.tokens, admission);
  }

  /** The fault of a proof, if any. */
  #fault({ token, identity }: NamedToken, answer: DiallerProof): string | undefined {
    if (!isSameProof(answer.proof, proofOf(token, "dialler", answer))) {
      return "it does not know the token";
    }
    if (!this.#challenges.take(answer.listenerNonce)) {
      return `the proof of "${identity.name}" is old, or was used before`;
    }
    return undefined;
  }

  #isMeant({ target, address }: DiallerProof): boolean {
    const { node, isService } = this.#options;
    return target === "service" ? isService : address === node();
  }

  #refuse(why: string): Response {
    this.#log(why);
    return this.#challenge();
  }

  #log(why: string): void {
    const { world } = this.#options;
    this.#refusedCount++;
    if (world.nowMs() >= this.#nextLogMs) {
      world.log("warn", `A connection was turned away: ${why}`, { refused: this.#refusedCount });
      this.#nextLogMs = world.nowMs() + LOG_EVERY_MS;
      this.#refusedCount = 0;
    }
  }

  #challenge(): Response {
    const headers = new Headers([
      ["www-authenticate", challengeHeader(this.#challenges.give())],
      ["www-authenticate", "Bearer"],
    ]);
    return new Response("A token is needed.\n", { status: 401, headers });
  }
}

/** How long a nonce can be answered, in ms. */
const LIFETIME_MS = 10_000;
/** Limit of the answers within that time. More are refused until the oldest nonce expires. */
const ANSWERED_MAX = 65_536;
/** Hexadecimal digits: creation time, random part, and a proof that it was issued here. */
const TIME_DIGITS = 12;
const RANDOM_DIGITS = 20;

/**
 * Issues nonces and accepts each at most once. An issued nonce takes no memory, so that strangers
 * cannot exhaust it by requesting many; a correctly answered one is kept until it expires.
 */
export class Challenges {
  readonly #world: World;
  readonly #key = newNonce();
  /** The expiry of each answered nonce, in the order of answers. */
  readonly #answered = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  give(): string {
    const time = Math.floor(this.#world.nowMs()).toString(16).padStart(TIME_DIGITS, "0");
    const body = time + newNonce().slice(0, RANDOM_DIGITS);
    return body + this.#mark(body);
  }

  /** Whether a nonce was issued here, is valid and was not answered; marks it as answered. */
  take(nonce: string): boolean {
    const body = nonce.slice(0, TIME_DIGITS + RANDOM_DIGITS);
    if (!isSameProof(nonce.slice(body.length), this.#mark(body))) return false;
    const nowMs = this.#world.nowMs();
    const endMs = parseInt(body.slice(0, TIME_DIGITS), 16) + LIFETIME_MS;
    this.#forget(nowMs);
    if (nowMs > endMs || this.#answered.has(nonce)) return false;
    if (this.#answered.size >= ANSWERED_MAX) return false;
    this.#answered.set(nonce, nowMs + LIFETIME_MS);
    return true;
  }

  #mark(body: string): string {
    return keyedHash(this.#key, body).slice(0, 32);
  }

  #forget(nowMs: number): void {
    for (const [nonce, endMs] of this.#answered) {
      if (endMs >= nowMs) return;
      this.#answered.delete(nonce);
    }
  }
}
