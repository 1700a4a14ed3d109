/** Limits the bytes of concurrent work, in the order of the calls. */
export class ByteGate {
  readonly #bytesMax: number;
  #bytes = 0;
  readonly #waiting: { readonly bytes: number; readonly enter: () => void }[] = [];

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Runs `work` once there is space for its bytes. Work of more bytes than the limit runs alone. */
  async run<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    const counted = Math.min(bytes, this.#bytesMax);
    await new Promise<void>((enter) => {
      this.#waiting.push({ bytes: counted, enter });
      this.#admit();
    });
    try {
      return await work();
    } finally {
      this.#bytes -= counted;
      this.#admit();
    }
  }

  #admit(): void {
    for (let next; (next = this.#waiting[0]) !== undefined; this.#waiting.shift()) {
      if (this.#bytes + next.bytes > this.#bytesMax) return;
      this.#bytes += next.bytes;
      next.enter();
    }
  }
}
