/**
 * A line that is redrawn in a terminal. Outside a terminal it is written at intervals, between the
 * permanent lines.
 */

/** Moves to the start of the line, and erases it. */
const CLEAR_LINE = "\r\x1b[K";
/** Least time between two redraws, in ms. */
const DRAW_MS = 100;

/** Writes to standard error. */
export class StatusLine implements Disposable {
  readonly #isTerminal = Deno.stderr.isTerminal();
  readonly #everyMs: number;
  #drawnMs: number;

  /**
   * @param options `plainEveryMs`: how often a line is written outside a terminal. Default: never.
   */
  constructor({ plainEveryMs = Infinity }: { readonly plainEveryMs?: number } = {}) {
    this.#everyMs = this.#isTerminal ? DRAW_MS : plainEveryMs;
    this.#drawnMs = this.#isTerminal ? -Infinity : performance.now();
  }

  /** Redraws the line. */
  show(line: string): void {
    if (performance.now() - this.#drawnMs < this.#everyMs) return;
    this.#drawnMs = performance.now();
    if (!this.#isTerminal) return console.error(line);
    write(CLEAR_LINE + line.slice(0, Deno.consoleSize().columns - 1));
  }

  /** Writes a line that stays. */
  note(line: string): void {
    this.clear();
    console.error(line);
  }

  clear(): void {
    if (this.#isTerminal) write(CLEAR_LINE);
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}

function write(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(text));
}
