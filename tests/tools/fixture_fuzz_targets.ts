/** Targets that fail on purpose, for the tests of the fuzzer. */
import type { Target } from "../../tools/fuzz/target.ts";

/** Longer inputs fail. Every mutation that inserts bytes makes one. */
export const BYTES_MAX = 40;

/** A target that accepts short inputs. */
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

/** Inputs since the last turn of the event loop. */
let runsOfTurn = 0;

function countInTurn(): void {
  if (runsOfTurn++ === 0) setTimeout(() => runsOfTurn = 0);
  if (runsOfTurn > 1_000) throw new Error("no turn of the event loop");
}

/** The failing targets by name. */
export const TARGETS: Readonly<Record<string, Target>> = {
  sound: failing(() => {}),
  turns: {
    help: "needs turns of the event loop",
    open: () => ({ seeds: [new Uint8Array(1)], run: countInTurn }),
  },
  error: failing((input) => input.at(BYTES_MAX + 1_000)!.toFixed()),
  // Every mutated input hangs; one is enough. It sleeps: a loop would keep a core busy for the whole
  // time limit.
  hang: failing(() => {
    for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }, (input) => Uint8Array.of(...input, 0)),
  crash: failing(() => Deno.exit(9)),
  memory: failing(() => held.push(new Uint8Array(300 * 2 ** 20).fill(1))),
};
