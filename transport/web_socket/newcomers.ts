/**
 * The connections of those who have not introduced themselves yet: how many there may be, and which
 * has to go when there are too many.
 *
 * Refusing the latest would let whoever holds them all keep everybody out. So the earliest goes, of the
 * address that has most: who introduces itself at once is not there for long. Whoever was challenged
 * for a token goes last: a program on a busy machine takes a while to answer, and those who only hold
 * a connection get no challenge.
 *
 * @module
 */

/** Newcomers that one address may have. */
const PER_ADDRESS_MAX = 128;
/** Newcomers that there may be. */
const NEWCOMERS_MAX = 256;
/** Newcomers that there may be, however few file handles are left. */
const NEWCOMERS_MIN = 4;

/** A connection that has not introduced itself. */
export interface Newcomer {
  /** Where it comes from. */
  readonly address: string;
  /** Whether it has asked to be let in, and was challenged to prove its token. */
  readonly isChallenged: boolean;
  /** Closes it. */
  drop(): void;
}

/** See the module. */
export class Newcomers {
  /** By address; each in the order of their coming. */
  readonly #of = new Map<string, Set<Newcomer>>();
  #size = 0;
  #max = NEWCOMERS_MAX;

  get size(): number {
    return this.#size;
  }

  /** Takes one in, for which another may have to go. */
  add(newcomer: Newcomer): void {
    const key = addressKey(newcomer.address);
    const others = this.#of.get(key);
    if (others !== undefined && others.size >= PER_ADDRESS_MAX) this.#dropFirst(others);
    while (this.#size >= this.#max) this.#dropOne();
    const own = this.#of.get(key);
    if (own === undefined) this.#of.set(key, new Set([newcomer]));
    else own.add(newcomer);
    this.#size++;
  }

  /** It has introduced itself, or is closed. */
  delete(newcomer: Newcomer): void {
    const key = addressKey(newcomer.address);
    const own = this.#of.get(key);
    if (own === undefined || !own.delete(newcomer)) return;
    this.#size--;
    if (own.size === 0) this.#of.delete(key);
  }

  /** File handles are short: closes so many, and keeps to fewer from now on. */
  shrink(count: number): void {
    this.#max = Math.max(NEWCOMERS_MIN, Math.min(this.#max, this.#size) - count);
    while (this.#size > this.#max) this.#dropOne();
  }

  /** File handles are no longer short. */
  grow(): void {
    this.#max = NEWCOMERS_MAX;
  }

  dropAll(): void {
    while (this.#size > 0) this.#dropOne();
  }

  #dropOne(): void {
    let most: Set<Newcomer> | undefined;
    for (const own of this.#of.values()) if (own.size > (most?.size ?? 0)) most = own;
    if (most !== undefined) this.#dropFirst(most);
  }

  /** Drops the earliest that was not challenged, or the earliest. */
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

/** What an address counts as: who has an IPv6 address has 2⁶⁴ of them. */
function addressKey(address: string): string {
  // That of one who has an IPv4 address, as a listener for both tells it.
  if (!address.includes(":") || address.includes(".")) return address;
  const [head = "", tail] = address.split("::");
  if (tail === undefined) return head.split(":", 4).join(":");
  const [front, back] = [head, tail].map((part) => part === "" ? [] : part.split(":"));
  const zeros = Array<string>(Math.max(0, 8 - front!.length - back!.length)).fill("0");
  return [...front!, ...zeros, ...back!].slice(0, 4).join(":");
}
