/**
 * Bounds the connections without a hello, and chooses which to drop when there are too many.
 *
 * If the newest was refused, an attacker who holds all connections could lock everybody out. So the
 * oldest connection of the address with the most is dropped: honest clients send their hello at
 * once. Challenged connections are dropped last: a program on a busy machine needs time to answer,
 * and idle connections get no challenge. Connections that have proved a token are not dropped, except
 * for those of an identity that has many: it could hold connections like anybody without a token.
 */

const PER_ADDRESS_MAX = 128;
const NEWCOMERS_MAX = 256;
/** So many newcomers are allowed even if file handles are short. */
const NEWCOMERS_MIN = 4;
/** So many connections of an identity that have proved its token are not dropped. */
const KEPT_PER_IDENTITY_MAX = 16;

/** A connection without a hello. */
export interface Newcomer {
  readonly address: string;
  /** Whether it has sent a request, and was challenged to prove its token. */
  readonly isChallenged: boolean;
  drop(): void;
}

export class Newcomers {
  /** By address; each in the order of arrival. */
  readonly #byAddress = new Map<string, Set<Newcomer>>();
  /** Connections that are not dropped, with the identities whose tokens they have proved. */
  readonly #kept = new Map<Newcomer, string>();
  #size = 0;
  #max = NEWCOMERS_MAX;

  get size(): number {
    return this.#size;
  }

  /** Adds a newcomer, and drops another if there are too many. */
  add(newcomer: Newcomer): void {
    const key = addressKey(newcomer.address);
    const others = this.#byAddress.get(key);
    if (others !== undefined && others.size >= PER_ADDRESS_MAX) this.#dropFirst(others);
    while (this.#size >= this.#max) this.#dropOne();
    this.#byAddress.getOrInsertComputed(key, () => new Set()).add(newcomer);
    this.#size++;
  }

  /** A newcomer has proved a token: it is not dropped, unless its identity has many such. */
  proved(newcomer: Newcomer, identity: string): void {
    let count = 0;
    for (const other of this.#kept.values()) if (other === identity) count++;
    if (count >= KEPT_PER_IDENTITY_MAX) return;
    this.delete(newcomer);
    this.#kept.set(newcomer, identity);
  }

  /** Removes a newcomer that has sent its hello, or is closed. */
  delete(newcomer: Newcomer): void {
    this.#kept.delete(newcomer);
    const key = addressKey(newcomer.address);
    const own = this.#byAddress.get(key);
    if (own === undefined || !own.delete(newcomer)) return;
    this.#size--;
    if (own.size === 0) this.#byAddress.delete(key);
  }

  /** File handles are short: closes `count` newcomers, and lowers the limit. */
  shrink(count: number): void {
    this.#max = Math.max(NEWCOMERS_MIN, Math.min(this.#max, this.#size) - count);
    while (this.#size > this.#max) this.#dropOne();
  }

  /** File handles are no longer short. */
  grow(): void {
    this.#max = NEWCOMERS_MAX;
  }

  #dropOne(): void {
    let most: Set<Newcomer> | undefined;
    for (const own of this.#byAddress.values()) if (own.size > (most?.size ?? 0)) most = own;
    if (most !== undefined) this.#dropFirst(most);
  }

  /** Drops the oldest that was not challenged, or else the oldest. */
  #dropFirst(own: Set<Newcomer>): void {
    let first: Newcomer | undefined;
    for (const newcomer of own) {
      first ??= newcomer;
      if (newcomer.isChallenged) continue;
      first = newcomer;
      break;
    }
    if (first === undefined) return;
    this.delete(first);
    first.drop();
  }
}

/** The key by which an address is counted: for IPv6 its /64 network, which one host may own. */
function addressKey(address: string): string {
  // An IPv4 address, maybe as a dual-stack listener writes it (::ffff:1.2.3.4).
  if (!address.includes(":") || address.includes(".")) return address;
  const [head = "", tail] = address.split("::");
  if (tail === undefined) return head.split(":", 4).join(":");
  const [front, back] = [head, tail].map((part) => part === "" ? [] : part.split(":"));
  const zeros = Array<string>(Math.max(0, 8 - front!.length - back!.length)).fill("0");
  return [...front!, ...zeros, ...back!].slice(0, 4).join(":");
}
