/**
 * Measures the rate of a load, and prints it. A load is opened once, warmed up, and run for several
 * windows of time. Its rate is the median of the windows.
 *
 * Nothing in this folder imports Leat, so that Leat cannot slow a baseline down.
 */

/** Work that can run at full speed for a while. Disposing it frees its resources. */
export interface Load extends AsyncDisposable {
  /** Runs for about `ms` milliseconds and returns the rate, in units per second. */
  window(ms: number): Promise<number>;
}

/** How long a load is measured. */
interface MeasureOptions {
  /** Length of a window in milliseconds. Default: 400. */
  readonly windowMs?: number;
  /** The number of windows for the median. Default: 5. */
  readonly windows?: number;
  /** How long the load runs before the first window, in milliseconds. Default: 500. */
  readonly warmUpMs?: number;
}

/** A measured rate. */
interface Figure {
  readonly name: string;
  /** What `value` counts, per second: `elements/s`, `MB/s` (10⁶ bytes), … */
  readonly unit: string;
  /** The median of the windows. */
  readonly value: number;
  /** The rate of every window, in order. */
  readonly windows: readonly number[];
}

/** Opens a load, measures it and closes it. */
export async function measure(
  name: string,
  unit: string,
  open: () => Load | Promise<Load>,
  options: MeasureOptions = {},
): Promise<Figure> {
  const { windowMs = 400, windows: count = 5, warmUpMs = 500 } = options;
  await using load = await open();
  await load.window(warmUpMs);
  const windows: number[] = [];
  while (windows.length < count) windows.push(await load.window(windowMs));
  return { name, unit, value: median(windows), windows };
}

/** Returns the middle value, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const low = sorted[(sorted.length - 1) >> 1] ?? NaN;
  const high = sorted[sorted.length >> 1] ?? NaN;
  return (low + high) / 2;
}

/** Returns a load that calls `step` repeatedly. `step` does not wait, and returns the units it did. */
export function synchronousLoad(step: () => number, close: () => void = () => {}): Load {
  return {
    window(ms) {
      const startedMs = performance.now();
      let units = 0;
      let elapsedMs = 0;
      do {
        units += step();
        elapsedMs = performance.now() - startedMs;
      } while (elapsedMs < ms);
      return Promise.resolve(units / elapsedMs * 1000);
    },
    [Symbol.asyncDispose]() {
      close();
      return Promise.resolve();
    },
  };
}

/** Returns a load that keeps `inFlight` calls of `step` open. Each resolves to the units it did. */
export function pipelinedLoad(
  inFlight: number,
  step: () => Promise<number>,
  close: () => void | Promise<void> = () => {},
): Load {
  return {
    async window(ms) {
      const startedMs = performance.now();
      const end = startedMs + ms;
      const units = await drive(inFlight, step, () => performance.now() >= end);
      return units / (performance.now() - startedMs) * 1000;
    },
    async [Symbol.asyncDispose]() {
      await close();
    },
  };
}

/**
 * Returns a load that calls `step` repeatedly. Each call is one unit, and resolves to how much of its
 * time counts, in milliseconds.
 */
export function sequentialLoad(
  step: () => Promise<number>,
  close: () => void | Promise<void> = () => {},
): Load {
  return {
    async window(ms) {
      let units = 0;
      let elapsedMs = 0;
      do {
        elapsedMs += await step();
        units++;
      } while (elapsedMs < ms);
      return units / elapsedMs * 1000;
    },
    async [Symbol.asyncDispose]() {
      await close();
    },
  };
}

/** Keeps `inFlight` calls of `step` open until `isOver`, and returns the sum of their results. */
export async function drive(
  inFlight: number,
  step: () => Promise<number>,
  isOver: () => boolean,
): Promise<number> {
  let sum = 0;
  const lane = async () => {
    while (!isOver()) {
      // Not `sum += await …`, which would read `sum` before the wait.
      const units = await step();
      sum += units;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  return sum;
}

/**
 * Measures a load and prints the figure: a line of JSON on standard output for programs, one on
 * standard error for users.
 */
export async function printMeasured(
  name: string,
  unit: string,
  open: () => Load | Promise<Load>,
): Promise<void> {
  const figure = await measure(name, unit, open);
  const lowest = Math.min(...figure.windows);
  const highest = Math.max(...figure.windows);
  console.error(
    `${figure.name.padEnd(34)} ${show(figure.value)} ${figure.unit}` +
      ` (${show(lowest).trim()} to ${show(highest).trim()})`,
  );
  console.log(JSON.stringify(figure));
}

function show(value: number): string {
  return Math.round(value).toLocaleString("en-US").padStart(13);
}
