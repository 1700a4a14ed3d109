/**
 * The nonces of a listener. Nothing is kept for one that is given out, so that strangers who ask for
 * many take no memory; one that was answered rightly is kept until it is too old, and counts no more.
 *
 * @module
 */
import type { World } from "../../actors/runtime/world.ts";
import { isSameProof, keyedHash, newNonce } from "./proof.ts";

/** How long a nonce may be answered, in ms. */
const LIFETIME_MS = 10_000;
/** Nonces answered within that time; beyond it nobody gets in until the oldest is too old. */
const ANSWERED_MAX = 65_536;
/** Hexadecimal digits: when it was made, something random, and what proves that it is from here. */
const TIME_DIGITS = 12;
const RANDOM_DIGITS = 20;

/** See the module. */
export class Challenges {
  readonly #world: World;
  readonly #key = newNonce();
  /** By nonce: when it is too old. In order of being answered. */
  readonly #answered = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  /** A new nonce. */
  give(): string {
    const time = Math.floor(this.#world.nowMs()).toString(16).padStart(TIME_DIGITS, "0");
    const body = time + newNonce().slice(0, RANDOM_DIGITS);
    return body + this.#mark(body);
  }

  /** Whether a nonce is from here, young, and was not answered before; afterwards it was. */
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
