/** The bytes that the buffers of one pipeline's tuned operators hold, and the most they may. */
export class RamBudget {
  readonly bytesMax: number;
  #heldBytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** What is held now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Notes that this many more bytes are held. */
  holds(bytes: number): void {
    this.#heldBytes += bytes;
  }

  /** Whether one more element of this size fits. */
  fits(bytes: number): boolean {
    return this.#heldBytes + bytes <= this.bytesMax;
  }
}
