/** The command line and the exit status of `deno task fastflow`; fastflow_long_test.ts runs it. */
import { interrupted, statusOf } from "../../../cli/fastflow.ts";
import { EXIT_FAILURE } from "../../../cli/lib/args.ts";
import { removeInUse } from "../../../cli/lib/folders.ts";
import { assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { withFiles } from "../../lib/temp_folder.ts";

/** No system has a folder of this name, so its removal fails. */
const NO_FOLDER = "/tmp/no\0folder";

/** Returns what a function prints. */
function printsOf(act: () => void): string {
  const lines: unknown[] = [];
  const { log, error } = console;
  console.log = console.error = (...words) => void lines.push(...words);
  try {
    act();
  } finally {
    Object.assign(console, { log, error });
  }
  return lines.join("\n");
}

Deno.test("fastflow exits with 1 if an environment of --measured failed", () => {
  const sweep = { swept: [], lanes: 1, failed: ["T 1:1: the trainer has died"] };
  assertEquals(statusOf({ sweep }), EXIT_FAILURE);
  assertEquals(statusOf({ sweep: { ...sweep, failed: [] } }), 0);
  assertEquals(statusOf({}), 0);
});

Deno.test("fastflow that is interrupted keeps its results, then removes its data", async () => {
  await withFiles({ "data/sounds": "" }, (folder) => {
    const out = `${folder}/out.json`;
    const partial = { costs: [], outcomes: [], sweep: { swept: [], lanes: 1, failed: [] } };
    for (const data of [`${folder}/data`, NO_FOLDER]) {
      let line = "";
      const printed = printsOf(() => line = interrupted(partial, out, data));
      assertMatch(line, /^Interrupted: the table has/);
      assertStringIncludes(printed, "┌");
      assertEquals(JSON.parse(Deno.readTextFileSync(out)), partial);
      Deno.removeSync(out);
    }
    assertEquals([...Deno.readDirSync(folder)], []);
    return Promise.resolve();
  });
});

Deno.test("removeInUse only warns of a folder that it cannot remove", () => {
  assertMatch(printsOf(() => removeInUse(NO_FOLDER)), /^The folder .* is left over/);
  assertEquals(printsOf(() => removeInUse("/tmp/leat-no-such-folder")), "");
});
