/**
 * The live view of a running cluster: one line that is redrawn in a terminal, a line every few
 * seconds elsewhere.
 */
import type { Ledger } from "./ledger.ts";
import type { Observer } from "./observer.ts";

const TERMINAL_INTERVAL_MS = 250;
const PLAIN_INTERVAL_MS = 1_000;
/** Returns to the line's beginning, and erases the line. */
const CLEAR_LINE = "\r\x1b[K";

export class LiveView implements Disposable {
  readonly #isTerminal = Deno.stderr.isTerminal();
  #drawn = false;

  /** Writes a line that stays. */
  note(line: string): void {
    this.#clear();
    console.error(line);
  }

  /** Shows the progress of the job until disposed. */
  follow(observer: Observer, ledger: Ledger): Disposable {
    const startedMs = performance.now();
    let [beforeMs, before] = [startedMs, 0];
    const intervalMs = this.#isTerminal ? TERMINAL_INTERVAL_MS : PLAIN_INTERVAL_MS;
    let ended = false;
    const timer = setInterval(async () => {
      await observer.refresh();
      if (ended) return;
      const nowMs = performance.now();
      const rate = (ledger.received - before) / ((nowMs - beforeMs) / 1_000);
      [beforeMs, before] = [nowMs, ledger.received];
      this.#show(lineOf((nowMs - startedMs) / 1_000, ledger.received, rate, observer));
    }, intervalMs);
    return {
      [Symbol.dispose]: () => {
        ended = true;
        clearInterval(timer);
        this.#clear();
      },
    };
  }

  [Symbol.dispose](): void {
    this.#clear();
  }

  #show(line: string): void {
    if (!this.#isTerminal) return console.error(line);
    const { columns } = Deno.consoleSize();
    this.#write(CLEAR_LINE + line.slice(0, columns - 1));
    this.#drawn = true;
  }

  #clear(): void {
    if (this.#drawn) this.#write(CLEAR_LINE);
    this.#drawn = false;
  }

  #write(text: string): void {
    Deno.stderr.writeSync(new TextEncoder().encode(text));
  }
}

function lineOf(seconds: number, received: number, rate: number, observer: Observer): string {
  const { handedOut, total } = observer.splits;
  const names = [...observer.workers].map(([name, { alive }]) => alive ? name : `${name} DEAD`)
    .sort();
  const parts = [
    `${seconds.toFixed(1)} s`,
    `${received.toLocaleString("en")} elements (${Math.round(rate).toLocaleString("en")}/s)`,
    ...(total === 0 ? [] : [`${handedOut} of ${total} splits`]),
    `workers: ${names.length === 0 ? "none yet" : names.join(", ")}`,
  ];
  return parts.join("  ");
}
