/**
 * The live view of a running cluster: one line that is redrawn in a terminal, a line every few
 * seconds elsewhere.
 */
import type { StatusLine } from "../lib/status_line.ts";
import type { Ledger } from "./ledger.ts";
import type { Observer } from "./observer.ts";

const TERMINAL_INTERVAL_MS = 250;
const PLAIN_INTERVAL_MS = 1_000;

/** Shows the progress of the job until disposed. */
export function followJob(status: StatusLine, observer: Observer, ledger: Ledger): Disposable {
  const view = new JobView(status, observer, ledger);
  const timer = setInterval(
    () => view.refresh(),
    Deno.stderr.isTerminal() ? TERMINAL_INTERVAL_MS : PLAIN_INTERVAL_MS,
  );
  return {
    [Symbol.dispose]() {
      clearInterval(timer);
      view.end();
    },
  };
}

type Observed = Pick<Observer, "refresh" | "splits" | "workers">;

/** The line of a job. */
export class JobView {
  readonly #status: Pick<StatusLine, "show" | "clear">;
  readonly #observer: Observed;
  readonly #ledger: Pick<Ledger, "received">;
  readonly #nowMs: () => number;
  readonly #startedMs: number;
  #beforeMs: number;
  #before = 0;
  #isRefreshing = false;
  #hasEnded = false;

  constructor(
    status: Pick<StatusLine, "show" | "clear">,
    observer: Observed,
    ledger: Pick<Ledger, "received">,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#status = status;
    this.#observer = observer;
    this.#ledger = ledger;
    this.#nowMs = nowMs;
    this.#startedMs = this.#beforeMs = nowMs();
  }

  /**
   * Shows new figures. Does nothing during another refresh: of two that end together, the second would
   * divide by the time between them, which is almost 0.
   */
  async refresh(): Promise<void> {
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    await this.#observer.refresh();
    this.#isRefreshing = false;
    if (!this.#hasEnded) this.#show();
  }

  end(): void {
    this.#hasEnded = true;
    this.#status.clear();
  }

  #show(): void {
    const nowMs = this.#nowMs();
    const { received } = this.#ledger;
    const rate = (received - this.#before) / ((nowMs - this.#beforeMs) / 1_000);
    [this.#beforeMs, this.#before] = [nowMs, received];
    this.#status.show(lineOf((nowMs - this.#startedMs) / 1_000, received, rate, this.#observer));
  }
}

function lineOf(seconds: number, received: number, rate: number, observer: Observed): string {
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
