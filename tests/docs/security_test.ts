/** Compares `SECURITY.md` with the code: every test that it names exists. */
import { assert, assertEquals } from "../assert.ts";

const PAGE = new URL("../../SECURITY.md", import.meta.url);
const page = (await Deno.readTextFile(PAGE)).replaceAll(/\s+/g, " ");

/** Tests by name, each with the file that is named before it. */
function namedTests(): { readonly path: string; readonly name: string }[] {
  const cited = page.matchAll(/\]\((tests\/[^)]+_test\.ts)\)((?:(?:,| and)? "[^"]+")+)/g);
  return [...cited].flatMap(([, path, names]) =>
    [...names!.matchAll(/"([^"]+)"/g)].map(([, name]) => ({ path: path!, name: name! }))
  );
}

Deno.test("every test that SECURITY.md names is in the file that it gives", async () => {
  const tests = namedTests();
  assert(tests.length >= 15, `${tests.length} names`);
  const missing: string[] = [];
  for (const { path, name } of tests) {
    const text = await Deno.readTextFile(new URL(path, PAGE));
    if (!text.includes(`"${name}"`)) missing.push(`${path}: "${name}"`);
  }
  assertEquals(missing, []);
});
