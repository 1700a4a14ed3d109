/** Limits each identity's request rate, so that a client in a loop cannot starve the others. */
import { LeatError } from "../../../core/error.ts";
import type { Delivery } from "../../runtime/protocol.ts";

/** A bucket's capacity, as ms at the full rate: many clients of one process start at once. */
const BURST_MS = 5_000;
/** Above this number, full buckets are dropped. */
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
    // All users of a cluster's single token are admins, so each node has a bucket.
    const key = sender.role === "admin" ? source.node : sender.name;
    const bucket = this.#bucketOf(key);
    if (bucket.tokens < 1) {
      throw new LeatError(
        "resource_exhausted",
        `More than ${this.#perSecondMax} requests a second (requestsPerSecondMax) come from "${key}"; ask ` +
          "less often, or raise the dispatcher's quotas",
      );
    }
    bucket.tokens--;
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
