/** Makes and runs the inputs of a target. The same seed and number give the same input anywhere. */
import { causesOf, innermostCause, LeatError } from "../../core/error.ts";
import { SimRandom } from "../../sim/engine/random.ts";
import { mutateBytes } from "./mutate_bytes.ts";
import type { OpenTarget } from "./target.ts";

/**
 * Codes of unexpected errors, which wrap a thrown error that was not a `LeatError`.
 */
const UNEXPECTED_CODES: ReadonlySet<string> = new Set(["internal", "unknown"]);

/** Returns the inputs of a target by number: first its seeds, then mutants. */
export function inputsOf(target: OpenTarget, name: string, seed: bigint) {
  const root = new SimRandom(seed).fork(name);
  const { seeds } = target;
  return (index: number): Uint8Array => {
    if (index < seeds.length) return seeds[index]!;
    const random = root.fork(String(index));
    const from = seeds[random.int(seeds.length)]!;
    return (target.mutate ?? mutateBytes)(from, random, seeds);
  };
}

/** The result of an input. */
export type Verdict =
  | { readonly kind: "valid" }
  | { readonly kind: "refused"; readonly code: string }
  | { readonly kind: "failed"; readonly message: string; readonly signature: string };

/** Runs one input. */
export async function judge(target: OpenTarget, input: Uint8Array): Promise<Verdict> {
  try {
    await target.run(input);
    return { kind: "valid" };
  } catch (error) {
    if (error instanceof LeatError && !UNEXPECTED_CODES.has(error.code)) {
      return { kind: "refused", code: error.code };
    }
    return { kind: "failed", message: messageOf(error), signature: signatureOf(error) };
  }
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return causesOf(error).map((cause) => cause.stack ?? String(cause)).join("\nCaused by: ");
}

/** Returns what was thrown and where, which is equal for failures of one fault. */
function signatureOf(thrown: unknown): string {
  const error = innermostCause(thrown);
  if (!(error instanceof Error)) return String(error).slice(0, 80);
  const frames = error.stack?.match(/^ {4}at .*$/mg) ?? [];
  return [error.name, error.message.replaceAll(/\d+/g, "#").slice(0, 60), ...frames.slice(0, 2)]
    .join("\n");
}
