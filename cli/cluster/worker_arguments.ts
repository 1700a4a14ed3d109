/** The arguments of the workers that `deno task autoscale` starts. */
import { parseCommandLine, UsageError } from "../lib/args.ts";

/** Options of a worker that the autoscaler sets, and what to give it instead. */
const SET_BY_AUTOSCALER: ReadonlyMap<string, string> = new Map([
  ["--dispatcher", "it"],
  ["--name", "the prefix of all names"],
  ["--drain-ms", "it"],
  ["--token", "it"],
  ["--token-file", "it"],
  ["--ca", "it"],
]);

/**
 * Checks the workers' arguments before the first start, and returns the tags. With wrong arguments,
 * each worker would end at once, and the scaler would start it again.
 * @param own The arguments that the autoscaler gives to each worker.
 * @param given Those of the user, after `--`.
 */
export async function readWorkerTags(
  own: readonly string[],
  given: readonly string[],
): Promise<readonly string[]> {
  const { PROGRAM: worker } = await import("../worker.ts");
  try {
    requireNoneOf(SET_BY_AUTOSCALER, given);
    const values = await parseCommandLine(worker, [...own, ...given]);
    requireShareable(values);
    return values.tag;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(
      `The arguments for workers (after --) are wrong: ${error.message}`,
    );
  }
}

function requireNoneOf(taken: ReadonlyMap<string, string>, given: readonly string[]): void {
  for (const arg of given) {
    const [option = ""] = arg.split("=", 1);
    const instead = taken.get(option);
    if (instead === undefined) continue;
    throw new UsageError(`autoscale sets ${option} of each worker: give ${instead} before --`);
  }
}

/** Refuses a port of the workers' own: all workers of a host get the same arguments. */
function requireShareable(
  { port, advertise = "" }: { readonly port: number; readonly advertise?: string | undefined },
): void {
  if (port !== 0) {
    throw new UsageError(
      `--port is ${port}, but only one worker can listen there: leave it out, and each takes a ` +
        "free port",
    );
  }
  if (/:\d+$/.test(advertise)) {
    throw new UsageError(
      `--advertise is ${advertise}, but only one worker can have this port: give the host alone`,
    );
  }
}
