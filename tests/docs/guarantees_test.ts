/** Compares `docs/reference/guarantees.md` with the code: named tests exist, limits have their values, examples print the text below them. */

import { assert, assertEquals } from "../assert.ts";

const PAGE = new URL("../../docs/reference/guarantees.md", import.meta.url);
const page = await Deno.readTextFile(PAGE);

const readBeside = (path: string) => Deno.readTextFile(new URL(path, PAGE));

/** Tests by name, each with the file that it is said to be in. */
function namedTests(): { readonly path: string; readonly name: string }[] {
  const text = page.replaceAll(/\s+/g, " ");
  const cited = text.matchAll(/\]\((\.\.\/\.\.\/tests\/[^)]+)\)((?:,? ?"[^"]+")+)/g);
  return [...cited].flatMap(([, path, names]) =>
    [...names!.matchAll(/"([^"]+)"/g)].map(([, name]) => ({ path: path!, name: name! }))
  );
}

Deno.test("every test that docs/reference/guarantees.md names is in the file that it gives", async () => {
  const tests = namedTests();
  assert(tests.length > 80, `${tests.length} names`);
  const links = page.match(/\]\(\.\.\/\.\.\/tests\//g)!;
  const files = new Set(tests.map(({ path }) => path));
  assert(links.length >= files.size);
  const missing: string[] = [];
  for (const { path, name } of tests) {
    if (!(await readBeside(path)).includes(`"${name}"`)) missing.push(`${path}: "${name}"`);
  }
  assertEquals(missing, []);
});

Deno.test("every promise in docs/reference/guarantees.md names a test", () => {
  const promises = page.split(/^- (?=\*\*)/m).slice(1);
  assert(promises.length > 40, `${promises.length} promises`);
  for (const promise of promises) {
    assert(/Tests: (- )?\[/.test(promise.replaceAll(/\s+/g, " ")), promise);
  }
});

Deno.test("every limit in docs/reference/guarantees.md is in the code with that value", async () => {
  const limits = [...page.matchAll(/^\|[^|]*\|[^|]*\| \[`([^`]+)`\]\(([^)]+)\) \|/gm)];
  assert(limits.length > 15, `${limits.length} limits`);
  for (const [, expression, path] of limits) {
    assert((await readBeside(path!)).includes(expression!), `${expression} in ${path}`);
  }
});

Deno.test("the examples of docs/reference/guarantees.md print what it says", async () => {
  const examples = [...page.matchAll(/```ts\n(.*?)```\n\nIt prints:\n\n```text\n(.*?)```/gs)];
  assertEquals(examples.length, page.match(/```ts\n/g)!.length);
  assert(examples.length >= 4);
  for (const [, code, wanted] of examples) assertEquals(await printed(code!), wanted);
});

/** What a module writes with `console.log`. */
async function printed(code: string): Promise<string> {
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  const { log } = console;
  let text = "";
  console.log = (...values: unknown[]) => {
    const words = values.map((value) => typeof value === "string" ? value : Deno.inspect(value));
    text += `${words.join(" ")}\n`;
  };
  try {
    await Deno.writeTextFile(file, code.replaceAll('"../../', `"${new URL("../../", PAGE)}`));
    await import(`file://${file}`);
    return text;
  } finally {
    console.log = log;
    await Deno.remove(file);
  }
}
