/** The items of a split, kept until all of its readers have taken them. */
import { type ElementAnswer, isFinal, type Own, type StreamPosition } from "../protocol.ts";

/** An item of a split; each has a position. */
export type SplitItem = ElementAnswer & { readonly place: StreamPosition };

/** Items are numbered by their position in the split. */
export class SplitItems {
  /** The items from number `#first` on. */
  #items: SplitItem[] = [];
  #first = 0;
  #bytes = 0;
  /** Per reader, the number of the next item; Infinity: it wants nothing of the split. */
  readonly #cursors: number[];
  /** The lowest cursor, and how many readers are at it. */
  #lowest = 0;
  #atLowest = 0;

  constructor(readers: number) {
    this.#cursors = Array<number>(readers).fill(0);
    this.#findLowest();
  }

  /** How many items some reader has not taken. */
  get length(): number {
    return this.#items.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(item: SplitItem): void {
    this.#items.push(item);
    if ("element" in item) this.#bytes += item.element.byteLength;
    this.#trim();
  }

  hasFor(reader: number): boolean {
    return this.#cursors[reader]! < this.#first + this.#items.length;
  }

  /** Takes the next item of a reader. A run of other readers' items becomes one item, `passed`. */
  take(reader: number, own: Own | undefined): SplitItem {
    const from = this.#cursors[reader]!;
    const item = this.#items[from - this.#first]!;
    let to = from;
    while (own !== undefined && this.#isAnothers(to, reader, own)) to++;
    this.#move(reader, Math.max(to, from + 1));
    return to === from ? item : { kind: "passed", place: item.place, count: to - from };
  }

  /** Notes that the reader wants nothing more of the split. */
  pass(reader: number): void {
    this.#move(reader, Infinity);
  }

  #isAnothers(at: number, reader: number, own: Own): boolean {
    const item = this.#items[at - this.#first];
    return (item?.kind === "element" || item?.kind === "error" && !isFinal(item)) &&
      (own.number + at) % this.#cursors.length !== reader;
  }

  #move(reader: number, to: number): void {
    const from = this.#cursors[reader]!;
    this.#cursors[reader] = to;
    if (from !== this.#lowest || from === to || --this.#atLowest > 0) return;
    this.#findLowest();
    this.#trim();
  }

  #findLowest(): void {
    this.#lowest = Infinity;
    for (const cursor of this.#cursors) {
      if (cursor < this.#lowest) [this.#lowest, this.#atLowest] = [cursor, 0];
      if (cursor === this.#lowest) this.#atLowest++;
    }
  }

  #trim(): void {
    const taken = Math.min(this.#lowest - this.#first, this.#items.length);
    if (taken <= 0) return;
    for (const item of this.#items.splice(0, taken)) {
      if ("element" in item) this.#bytes -= item.element.byteLength;
    }
    this.#first += taken;
  }
}
