/** Temporary folders of the programs. */
import { assertEquals, assertStringIncludes } from "../assert.ts";

const MODULE = import.meta.resolve("../../cli/lib/folders.ts");

Deno.test("makeTemporaryFolder says what to do where TMPDIR names a missing folder", async () => {
  const program = `import { makeTemporaryFolder } from ${JSON.stringify(MODULE)};
    try {
      makeTemporaryFolder("leat-");
    } catch (error) {
      console.log(error.code, error.message);
    }`;
  const { stdout, code } = await new Deno.Command("sh", {
    args: ["-c", 'TMPDIR=/nowhere exec deno eval "$1"', "sh", program],
  }).output();
  const text = new TextDecoder().decode(stdout);
  assertEquals(code, 0);
  assertStringIncludes(text, "not_found Cannot make a folder for temporary files: ");
  assertStringIncludes(text, "Set TMPDIR to an existing folder");
});
