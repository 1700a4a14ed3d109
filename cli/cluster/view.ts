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
  const startedMs = performance.now();
  let [beforeMs, before] = [startedMs, 0];
  let ended = false;
  const timer = setInterval(async () => {
    await observer.refresh();
    if (ended) return;
    const nowMs = performance.now();
    const rate = (ledger.received - before) / ((nowMs - beforeMs) / 1_000);
    [beforeMs, before] = [nowMs, ledger.received];
    status.show(lineOf((nowMs - startedMs) / 1_000, ledger.received, rate, observer));
  }, Deno.stderr.isTerminal() ? TERMINAL_INTERVAL_MS : PLAIN_INTERVAL_MS);
  return {
    [Symbol.dispose]() {
      ended = true;
      clearInterval(timer);
      status.clear();
    },
  };
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
