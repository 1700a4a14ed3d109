/** Limits each identity's request rate, so that a client in a loop cannot starve the others. */
import { LeatError } from "../../../core/error.ts";
import type { Delivery } from "../../runtime/protocol.ts";

/**
 * A full bucket allows the requests of this many ms at once, because many clients of one process
 * start together.
 */
const BURST_MS = 5_000;
/** This many bytes of a request or answer count as one more request. */
const BYTES_PER_REQUEST = 16 * 2 ** 10;
/** The bytes of a request that count as no more: heartbeats about many tasks have fewer. */
const FREE_BYTES = 32 * 2 ** 10;
/** At this many buckets, those that are full again are forgotten: a new bucket is full, too. */
const BUCKETS_MAX = 4_096;

interface Bucket {
  tokens: number;
  atMs: number;
}

/** A token bucket per identity. */
export class RequestRates {
  readonly #perSecondMax: number;
  readonly #nowMs: () => number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(perSecondMax: number, nowMs: () => number) {
    this.#perSecondMax = perSecondMax;
    this.#nowMs = nowMs;
  }

  /** @throws LeatError `resource_exhausted` above the rate. */
  take({ sender, source }: Pick<Delivery, "sender" | "source">): void {
    const key = keyOf({ sender, source });
    const bucket = this.#bucketOf(key);
    if (bucket.tokens < 1) {
      throw new LeatError(
        "resource_exhausted",
        `"${key}" has used up its ${this.#perSecondMax} requests a second (requestsPerSecondMax), of ` +
          "which those with large lists or answers count as several; send fewer, or raise the dispatcher's quotas",
      );
    }
    bucket.tokens--;
  }

  /** Counts what a request has beyond {@linkcode FREE_BYTES} as more requests. */
  addRequest(by: Pick<Delivery, "sender" | "source">, bytes: number): void {
    if (bytes > FREE_BYTES) this.addAnswer(by, bytes - FREE_BYTES);
  }

  /** Counts an answer as more requests, by its size. This may leave a negative number of tokens. */
  addAnswer(by: Pick<Delivery, "sender" | "source">, bytes: number): void {
    this.#bucketOf(keyOf(by)).tokens -= bytes / BYTES_PER_REQUEST;
  }

  get #capacity(): number {
    return this.#perSecondMax * BURST_MS / 1_000;
  }

  #bucketOf(key: string): Bucket {
    const nowMs = this.#nowMs();
    const known = this.#buckets.get(key);
    if (known !== undefined) {
      known.tokens = this.#tokensAt(known, nowMs);
      known.atMs = nowMs;
      return known;
    }
    if (this.#buckets.size >= BUCKETS_MAX) this.#forgetFull(nowMs);
    const full = { tokens: this.#capacity, atMs: nowMs };
    this.#buckets.set(key, full);
    return full;
  }

  #tokensAt({ tokens, atMs }: Bucket, nowMs: number): number {
    return Math.min(this.#capacity, tokens + (nowMs - atMs) * this.#perSecondMax / 1_000);
  }

  #forgetFull(nowMs: number): void {
    for (const [key, bucket] of this.#buckets) {
      if (this.#tokensAt(bucket, nowMs) >= this.#capacity) this.#buckets.delete(key);
    }
  }
}

/**
 * Admins have a bucket for each node, not one for their identity: with a single token all programs of
 * a cluster are the same admin.
 */
function keyOf({ sender, source }: Pick<Delivery, "sender" | "source">): string {
  return sender.role === "admin" ? source.node : sender.name;
}
