/** Formats the faults and crashes of a run as command-line flags, and parses them. */
import { LeatError } from "../../core/error.ts";
import { mutantOptions } from "../mutants/mutant.ts";
import { MUTANTS } from "../mutants/mutants.ts";
import { type CrashPoint, type Role, ROLES } from "../faults/crashes.ts";
import { type FaultOptions, NO_FAULTS } from "../faults/options.ts";
import { drawOptions } from "../workloads/swarm.ts";
import type { RunOptions } from "../workloads/workload.ts";
import { checkPairs, readFault } from "./fault_values.ts";
import type { SeedRun } from "./seed_run.ts";

/** The word for an empty list. */
const NONE = "none";

/** Returns the command that repeats one run. */
export function repeatCommand(run: SeedRun): string {
  const { workload, mutant, options } = run;
  const wrong = mutant === undefined ? "" : ` --mutant ${mutant}`;
  return `deno task vopr --workload ${workload}${wrong} --seed ${options.seed}` +
    `${optionFlags(run)} --timeline`;
}

/** Returns the flags for these options; none if the seed draws them. */
function optionFlags({ mutant, options }: SeedRun): string {
  const { faults, crashes = [], crashPoint } = options;
  if (crashPoint !== undefined) return ` --crash ${crashPoint.role}@${crashPoint.message}`;
  const given = seedOptions(options.seed, mutant);
  const flags = ` --faults ${formatFaults(faults)} --crashes ${formatCrashes(crashes)}`;
  const isGiven = formatFaults(faults) === formatFaults(given.faults) &&
    formatCrashes(crashes) === formatCrashes(given.crashes ?? []);
  return isGiven ? "" : flags;
}

/** Returns the options that a seed draws, or those of a mutant. */
export function seedOptions(seed: bigint, mutant?: string): RunOptions {
  return mutant === undefined ? drawOptions(seed) : mutantOptions(MUTANTS.get(mutant)!, seed);
}

/** Formats the crashing roles as a flag's value. */
export function formatCrashes(crashes: readonly Role[]): string {
  return crashes.join(",") || NONE;
}

/** Formats the faults that differ from `NO_FAULTS` as a flag's value. */
export function formatFaults(faults: FaultOptions): string {
  const calm: Readonly<Record<string, unknown>> = { ...NO_FAULTS };
  const some = Object.entries(faults).filter(([name, value]) => value !== calm[name]);
  return some.map(([name, value]) => `${name}=${value}`).join(",") || NONE;
}

/** @throws LeatError `invalid_argument`, naming the invalid part and the allowed values. */
export function parseFaults(text: string): FaultOptions {
  const given = new Map<string, unknown>();
  for (const pair of text === NONE ? [] : text.split(",")) {
    const [name = "", value = ""] = pair.split(/=(.*)/s);
    if (given.has(name)) throw refuse(`--faults has ${name} twice: give each fault once`);
    given.set(name, readFault(name, value));
  }
  const faults: FaultOptions = { ...NO_FAULTS, ...Object.fromEntries(given) };
  checkPairs(faults, new Set(given.keys()));
  return faults;
}

/** @throws LeatError `invalid_argument`, naming the invalid part. */
export function parseCrashes(text: string): readonly Role[] {
  return text === NONE ? [] : text.split(",").map((name) => roleOf("--crashes", name));
}

/** A role that crashes at one message, or at each message if `message` is omitted. */
export interface CrashWish extends Pick<CrashPoint, "role"> {
  readonly message?: number;
}

/** @throws LeatError `invalid_argument`, naming the invalid part. */
export function parseCrash(text: string): CrashWish {
  const [, name = text, message] = /^(\w+)(?:@(\d+))?$/.exec(text) ?? [];
  const role = roleOf("--crash", name);
  if (message === undefined) return { role };
  if (Number(message) === 0) throw refuse(`--crash is '${text}', but messages are numbered from 1`);
  return { role, message: Number(message) };
}

function roleOf(flag: string, text: string): Role {
  const role = ROLES.find((each) => each === text);
  if (role !== undefined) return role;
  throw refuse(
    `${flag} is '${text}', but has to be ${ROLES.slice(0, -1).join(", ")} or ${ROLES.at(-1)}`,
  );
}

function refuse(message: string): LeatError {
  return new LeatError("invalid_argument", message);
}
