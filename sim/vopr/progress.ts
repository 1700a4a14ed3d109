/** Shows the progress of a campaign: a bar in a terminal, otherwise a plain line from time to time. */
// @ts-types="@types/cli-progress"
import type cliProgress from "cli-progress";
import process from "node:process";
import { createBars } from "../../cli/lib/bars.ts";
import { counted } from "../../cli/lib/counted.ts";

/** Interval of the plain lines. */
const PLAIN_INTERVAL_MS = 10_000;
/** Steps of the bar, which shows a share, because a campaign may end by its seeds or by the clock. */
const SHARES = 1_000;

/** The current progress. */
interface Position {
  readonly done: number;
  readonly failed: number;
  /** Omitted if events are not counted. */
  readonly eventsPerMs?: number;
}

/** The end of a campaign: a number of runs or a time, whichever comes first. */
interface Limits {
  readonly runs: number;
  readonly timeMs: number;
}

/** The words for runs. */
interface Wording {
  /** The noun for one run. Default `seed`. */
  readonly noun?: string;
  /** The word for failed runs. Default `failed`. */
  readonly failed?: string;
}

/** Shows the progress of one campaign. */
export class CampaignProgress implements Disposable {
  readonly #limits: Limits;
  readonly #wording: Wording;
  readonly #startMs = performance.now();
  readonly #bars: cliProgress.MultiBar | undefined;
  readonly #bar: cliProgress.SingleBar | undefined;
  #writtenMs = performance.now();

  constructor(limits: Limits, wording: Wording = {}) {
    this.#limits = limits;
    this.#wording = wording;
    if (!Deno.stderr.isTerminal()) return;
    this.#bars = createBars(process.stderr, "{bar} {text}");
    this.#bar = this.#bars.create(SHARES, 0, { text: "" });
  }

  /** Time since the beginning. */
  get elapsedMs(): number {
    return performance.now() - this.#startMs;
  }

  /** Shows the progress. It may be called often. */
  update(position: Position): void {
    const { elapsedMs } = this;
    const text = () => progressText(position, this.#limits, elapsedMs, this.#wording);
    if (this.#bar !== undefined) {
      const share = shareOf(position, this.#limits, elapsedMs);
      this.#bar.update(Math.floor(SHARES * share), { text: text() });
    } else if (performance.now() - this.#writtenMs >= PLAIN_INTERVAL_MS) {
      this.#writtenMs = performance.now();
      console.error(text());
    }
  }

  /** Prints a permanent line on standard output. */
  note(line: string): void {
    if (this.#bars !== undefined && Deno.stdout.isTerminal()) this.#bars.log(`${line}\n`);
    else console.log(line);
  }

  [Symbol.dispose](): void {
    this.#bars?.stop();
  }
}

/** Returns the finished share, from 0 to 1. */
function shareOf({ done }: Position, { runs, timeMs }: Limits, elapsedMs: number): number {
  return Math.min(1, Math.max(done / runs, elapsedMs / timeMs));
}

/** Returns one line with progress, rate and estimated remaining time. */
export function progressText(
  position: Position,
  limits: Limits,
  elapsedMs: number,
  { noun = "seed", failed: failedText = "failed" }: Wording = {},
): string {
  const { done, failed, eventsPerMs } = position;
  const { runs } = limits;
  const share = shareOf(position, limits, elapsedMs);
  const remainingMs = share === 0 ? Infinity : elapsedMs * (1 - share) / share;
  return [
    Number.isFinite(runs) ? `${done}/${counted(runs, noun)}` : counted(done, noun),
    `${(1_000 * done / elapsedMs).toFixed(1)}/s`,
    ...(eventsPerMs === undefined ? [] : [`${eventsPerMs.toFixed(0)} events/ms of a core`]),
    `${failed} ${failedText}`,
    `${durationText(remainingMs)} left`,
  ].join(", ");
}

/** Formats a duration as `3:05` or `1:02:03`. */
function durationText(durationMs: number): string {
  if (!Number.isFinite(durationMs)) return "?";
  const seconds = Math.round(durationMs / 1_000);
  const two = (n: number) => String(n).padStart(2, "0");
  const [h, m, s] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
