/** The command line and the exit status of `deno task fastflow`; fastflow_long_test.ts runs it. */
import { statusOf } from "../../../cli/fastflow.ts";
import { EXIT_FAILURE } from "../../../cli/lib/args.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("fastflow exits with 1 if an environment of --measured failed", () => {
  const sweep = { swept: [], lanes: 1, failed: ["T 1:1: the trainer has died"] };
  assertEquals(statusOf({ sweep }), EXIT_FAILURE);
  assertEquals(statusOf({ sweep: { ...sweep, failed: [] } }), 0);
  assertEquals(statusOf({}), 0);
});
