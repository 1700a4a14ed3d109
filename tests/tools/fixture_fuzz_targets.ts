/** Targets that fail on purpose, for the tests of the fuzzer. */
import type { Target } from "../../tools/fuzz/target.ts";

/** Longer inputs fail. All mutants that insert bytes are. */
export const BYTES_MAX = 40;

/** A target that bears short inputs. */
function failing(
  fail: (input: Uint8Array) => void,
  mutate?: (input: Uint8Array) => Uint8Array,
): Target {
  return {
    help: "fails where an input is long",
    open: () => ({
      seeds: [new Uint8Array(BYTES_MAX)],
      ...(mutate === undefined ? {} : { mutate }),
      run(input) {
        if (input.length > BYTES_MAX) fail(input);
      },
    }),
  };
}

const held: Uint8Array[] = [];

/** See the module. */
export const TARGETS: Readonly<Record<string, Target>> = {
  sound: failing(() => {}),
  error: failing((input) => input.at(BYTES_MAX + 1_000)!.toFixed()),
  // Each mutant fails: one takes long enough.
  hang: failing(() => {
    for (;;);
  }, (input) => Uint8Array.of(...input, 0)),
  crash: failing(() => Deno.exit(9)),
  memory: failing(() => held.push(new Uint8Array(300 * 2 ** 20).fill(1))),
};
