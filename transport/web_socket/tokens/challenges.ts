/**
 * The nonces of a listener. An issued nonce takes no memory, so that strangers cannot exhaust it by
 * requesting many; a correctly answered one is kept until it expires, and cannot be reused.
 */
import type { World } from "../../../actors/runtime/world.ts";
import { isSameProof, keyedHash, newNonce } from "./proof.ts";

const LIFETIME_MS = 10_000;
/** Most nonces answered within that time. Beyond it all are refused until the oldest expires. */
const ANSWERED_MAX = 65_536;
/** Hexadecimal digits: creation time, random part, and a proof that it was issued here. */
const TIME_DIGITS = 12;
const RANDOM_DIGITS = 20;

/** Issues nonces and accepts each at most once. */
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
