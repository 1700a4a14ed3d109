/** What a process holds after it has opened many iterators and disposed them midway. */
import { assert } from "../assert.ts";

/**
 * A leaked decompressor or buffer of each iterator would be more. The heap of a busy machine grows by
 * up to 70 MB.
 */
const GROWTH_BYTES_MAX = 160e6;
/** The pools of threads grow when the machine is busy. One for each iterator would be 10,000. */
const GROWTH_MAX = 100;

Deno.test({
  name: "10,000 iterators that are disposed midway leave no thread, handle or memory behind",
  // Its handles and threads are counted in /proc.
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const program = `${import.meta.dirname}/fixture_disposed_iterators.ts`;
    // Deno opens /proc/self/fd only with all permissions.
    const { success, stdout, stderr } = await new Deno.Command("deno", {
      args: ["run", "--allow-all", "--v8-flags=--expose-gc", program],
    }).output();
    const said = new TextDecoder().decode(stdout);
    assert(success, new TextDecoder().decode(stderr));
    const [early, late] = said.trim().split("\n").map((line) => JSON.parse(line));
    assert(late.handles - early.handles < GROWTH_MAX, said);
    assert(late.threads - early.threads < GROWTH_MAX, said);
    assert(late.bytes - early.bytes < GROWTH_BYTES_MAX, said);
  },
});
