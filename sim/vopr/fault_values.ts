/**
 * The faults that can be given on the command line, and their allowed values. Other values have no
 * meaning, or break promises that do not hold for such faults.
 */
import { LeatError } from "../../core/error.ts";
import { drawFaults, type FaultOptions, NO_FAULTS } from "../faults/options.ts";
import { SimRandom } from "../engine/random.ts";

/** Longer times could delay a healed cluster beyond its deadlines. */
const TIME_MAX_MS = 10_000;
/** With longer steps of the clock, actors would wait too long. */
const CLOCK_GRAIN_MAX_MS = 1_000;
/**
 * Maximum for the end of all faults and for jumps of wall clocks: about thirty years, in which virtual
 * time is exact.
 */
const SPAN_MAX_MS = 1e12;
const SPANS: ReadonlySet<string> = new Set(["healAfterMaxMs", "wallClockStepMaxMs"]);
/** With less bandwidth, the dispatcher's answer would arrive after the client's timeout. */
const BYTES_PER_SECOND_MIN = 1_000;
/** Some retries continue until no fault point fires, so they must end. */
const FAULT_POINT_MAX = 0.9;
const BYTES_MAX = 2 ** 50;
/** With more drift, a clock could stop or run backwards. */
const DRIFT_PPM_MAX = 500_000;

export const PARTITIONS: readonly FaultOptions["partition"][] = ["none", "isolate_one", "halves"];

/** Every fault that can be set, with a value of its type. */
const KINDS: Readonly<Record<string, unknown>> = {
  healAfterMaxMs: 0,
  bytesPerSecond: 0,
  ...drawFaults(new SimRandom(0n)),
  ...NO_FAULTS,
};

export const FAULT_NAMES: readonly string[] = Object.keys(KINDS);

/** Pairs in which the first value must not exceed the second. */
const PAIRS: readonly (readonly [min: keyof FaultOptions, max: keyof FaultOptions])[] = [
  ["delayMinMs", "delayMaxMs"],
  ["diskSyncMinMs", "diskSyncMaxMs"],
];

/** The allowed values: a range of numbers, or a list of words. */
type Allowed =
  | { readonly min: number; readonly max: number; readonly unit: string; readonly example: number }
  | { readonly words: readonly string[] };

function allowedFor(name: string): Allowed {
  if (name === "partition") return { words: PARTITIONS };
  if (typeof KINDS[name] === "boolean") return { words: ["true", "false"] };
  const bytes = { max: BYTES_MAX, unit: " of bytes", example: 16_384 };
  if (name === "bytesPerSecond") return { min: BYTES_PER_SECOND_MIN, ...bytes };
  if (name === "inFlightBytesMax") return { min: 0, ...bytes };
  if (name === "clockDriftPpmMax") {
    return { min: 0, max: DRIFT_PPM_MAX, unit: " of parts per million", example: 100 };
  }
  if (name.endsWith("Ms")) {
    const max = SPANS.has(name)
      ? SPAN_MAX_MS
      : name === "clockGrainMs"
      ? CLOCK_GRAIN_MAX_MS
      : TIME_MAX_MS;
    return { min: 0, max, unit: " of ms", example: 10 };
  }
  // Probabilities and shares.
  const max = name === "faultPointProbability" ? FAULT_POINT_MAX : 1;
  return { min: 0, max, unit: "", example: 0.1 };
}

/** Describes the allowed values of a fault. */
export function allowedText(name: string): string {
  const allowed = allowedFor(name);
  if ("words" in allowed) return allowed.words.join(", ");
  const { min, max, unit } = allowed;
  return `a number${unit} from ${min} to ${max}`;
}

/**
 * Reads a fault's value.
 * @throws LeatError `invalid_argument`, naming the fault, its value and the allowed values.
 */
export function readFault(name: string, text: string): unknown {
  if (!FAULT_NAMES.includes(name)) {
    throw refuse(`--faults: there is no fault '${name}'; there are: ${FAULT_NAMES.join(", ")}`);
  }
  const allowed = allowedFor(name);
  if ("words" in allowed) {
    if (allowed.words.includes(text)) return name === "partition" ? text : text === "true";
    throw refuse(`--faults: ${name} is '${text}', but has to be one of ${allowedText(name)}`);
  }
  const value = text.trim() === "" ? NaN : Number(text);
  if (value >= allowed.min && value <= allowed.max) return value;
  throw refuse(
    `--faults: ${name} is '${text}', but has to be ${allowedText(name)}, as in ` +
      `${name}=${allowed.example}`,
  );
}

/**
 * Refuses faults that contradict each other.
 * @param given The names of the faults that were set.
 * @throws LeatError `invalid_argument`, naming both and the remedy.
 */
export function checkPairs(faults: FaultOptions, given: ReadonlySet<string>): void {
  for (const [min, max] of PAIRS) {
    if (faults[min]! <= faults[max]!) continue;
    const text = (name: keyof FaultOptions) =>
      `${name} is ${faults[name]}${given.has(name) ? "" : " unless it is given"}`;
    throw refuse(
      `--faults: ${text(min)}, and ${text(max)}: give a ${max} that is no less than ${min}`,
    );
  }
}

function refuse(message: string): LeatError {
  return new LeatError("invalid_argument", message);
}
