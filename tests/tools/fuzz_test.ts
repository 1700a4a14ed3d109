/** The command line and the exit status of `deno task fuzz`; fuzz_long_test.ts runs it. */
import {
  EXIT_FAILURE,
  EXIT_INTERRUPTED,
  parseCommandLine,
  UsageError,
} from "../../cli/lib/args.ts";
import { helpText } from "../../cli/lib/help.ts";
import { PROGRAM, statusOf } from "../../tools/fuzz.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";

Deno.test("fuzz exits with 1 after a failure, also if Ctrl-C ended it", () => {
  assertEquals(statusOf({ failed: 1, isInterrupted: true }), EXIT_FAILURE);
  assertEquals(statusOf({ failed: 1, isInterrupted: false }), EXIT_FAILURE);
  assertEquals(statusOf({ failed: 0, isInterrupted: true }), EXIT_INTERRUPTED);
  assertEquals(statusOf({ failed: 0, isInterrupted: false }), 0);
});

Deno.test("fuzz refuses --seed with --input, which runs one file", async () => {
  await assertRejects(
    () => parseCommandLine(PROGRAM, ["--target", "wav", "--input", "a", "--seed", "1"]),
    UsageError,
    "leave out --inputs, --minutes and --seed",
  );
});

Deno.test("fuzz --help names the targets that may take more memory than --memory-mb", () => {
  assertStringIncludes(helpText(PROGRAM).replaceAll(/\s+/g, " "), "Always allowed: parquet ");
});
