/** Glob patterns: their meaning, and that no pattern is slow. */

import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { GlobName, GlobPositions, parseGlobs } from "../../../platform/storage/glob.ts";
import { expandBraces, GLOB_ALTERNATIVES_MAX } from "../../../platform/storage/glob_braces.ts";
import { DenoFiles } from "../../../platform/storage/files.ts";
import { StorageFiles } from "../../../platform/storage/storage.ts";
import { withFiles } from "../../lib/temp_folder.ts";

/** Whether a path below the current folder matches. */
function matches(pattern: string, path: string, of: "paths" | "keys" = "paths"): boolean {
  return parseGlobs(pattern, of).some(({ start, folder, segments }) => {
    if (segments === undefined) return start === path;
    if (!path.startsWith(folder)) return false;
    const names = path.slice(folder.length).split("/");
    let positions = GlobPositions.start([segments]);
    for (const name of names.slice(0, -1)) positions = positions.enter(name).below;
    return positions.enter(names.at(-1)!).matches;
  });
}

Deno.test("a glob pattern matches as documented", () => {
  const cases: [pattern: string, matching: string[], others: string[]][] = [
    ["*", ["a", "a.b", "*"], [".a", "a/b"]],
    ["a*c", ["ac", "abc", "abcbc"], ["a/c", "ab"]],
    ["?", ["a", "é", "😀"], ["", ".", "ab"]],
    ["a?", ["a.", "ab"], ["a/", "a"]],
    [".*", [".a", ".."], ["a"]],
    ["[a-c]x", ["ax", "cx"], ["dx", "[a-c]x"]],
    ["[!a-c]x", ["dx", "!x"], ["ax"]],
    ["[^a-c]x", ["dx"], ["ax"]],
    ["[]]x", ["]x"], ["x"]],
    ["[\\]x]", ["]", "x"], ["\\"]],
    ["[.]x", [], [".x"]],
    ["[😀-😂]", ["😁"], ["😃"]],
    ["[a", ["[a"], ["a"]],
    ["a[/]b*", ["a[/]b"], ["a/b"]],
    ["**", ["a", "a/b", "a/b/c"], [".a", "a/.b", ".a/b"]],
    ["**/b", ["b", "a/b", "a/a/b"], [".a/b", "ab"]],
    ["a/**/b", ["a/b", "a/c/b"], ["ab", "a/.c/b"]],
    ["**/**/b", ["b", "a/b"], []],
    ["**/.b", [".b", "a/.b"], [".a/.b"]],
    ["a//b*", ["a//b", "a//bc"], ["a/b"]],
    ["//b*", ["//b"], ["/b", "b"]],
    ["/b*", ["/b"], ["b"]],
    ["a**b", ["ab", "axb"], ["a/b"]],
    ["*/", [], ["a", "a/"]],
    ["{a,b}", ["a", "b"], ["{a,b}"]],
    ["{a,b/c}/*.x", ["a/1.x", "b/c/1.x"], ["b/1.x"]],
    ["{a{b,c},}d", ["abd", "acd", "d"], ["ad"]],
    ["{**,a}/b*", ["b", "a/b", "c/b"], []],
    ["{a}", ["{a}"], ["a"]],
    ["{a,b", ["{a,b"], ["a"]],
    ["{x,{a,b}", ["{x,a", "{x,b"], ["x"]],
    ["\\{a,b\\}", ["{a,b}"], ["a"]],
    ["[{]a,b}", ["{a,b}"], ["a"]],
    ["{\\,,a}", [",", "a"], ["\\,"]],
    ["\\*", ["*"], ["a", "\\*"]],
    ["!a", ["!a"], ["b"]],
    ["+(a|b)", ["+(a|b)"], ["a"]],
  ];
  for (const [pattern, matching, others] of cases) {
    for (const path of matching) assert(matches(pattern, path), `${pattern} and ${path}`);
    for (const path of others) assert(!matches(pattern, path), `${pattern} and not ${path}`);
  }
});

Deno.test("a pattern of keys matches each slash and dot of them", () => {
  const keys = ["a/b/x", "a/b//x", "a/b/./x", "a//x"];
  const matching = (pattern: string, of: "paths" | "keys") =>
    keys.filter((key) => matches(pattern, key, of));
  assertEquals(matching("a/*//x", "keys"), ["a/b//x"]);
  assertEquals(matching("a/*/./x", "keys"), ["a/b/./x"]);
  assertEquals(matching("a/b*/x", "keys"), ["a/b/x"]);
  assertEquals(matching("a//*", "keys"), ["a//x"]);
  assertEquals(matching("a/*//x", "paths"), matching("a/*/x", "paths"));
});

Deno.test("matching a glob pattern takes at most its length times the name's steps", () => {
  const letters = [..."ab".repeat(127), "c"];
  let steps = 0;
  const counted = new Proxy(letters, {
    get: (target, key) => {
      if (typeof key === "string" && key !== "length") steps++;
      return Reflect.get(target, key);
    },
  });
  for (const pattern of ["?*".repeat(40) + "x", "*a".repeat(100) + "x", "*ab".repeat(60) + "x"]) {
    steps = 0;
    assert(!new GlobName(pattern).matches(counted));
    assert(steps <= 2 * pattern.length * letters.length, `${pattern}: ${steps} steps`);
  }
});

Deno.test("a path below many ** has few positions", () => {
  const [glob] = parseGlobs("**/a/**/a/**/a/**/a/**/b", "paths");
  let positions = GlobPositions.start([glob!.segments!]);
  for (let level = 0; level < 200; level++) positions = positions.enter("a").below;
  assert(positions.count <= glob!.segments!.length, `${positions.count} positions`);
});

Deno.test("DenoFiles.list ends at once for a pattern that backtracks elsewhere", async () => {
  const names = ["a".repeat(255), "b".repeat(255)];
  await withFiles(Object.fromEntries(names.map((name) => [name, ""])), async (folder) => {
    const files = new DenoFiles();
    assertEquals((await files.list(`${folder}/${"?*".repeat(40)}`)).length, 2);
    assertEquals(await files.list(`${folder}/${"?*".repeat(40)}x`), []);
  });
});

Deno.test("expandBraces looks for a range in braces without trying all dots", () => {
  const dots = ".".repeat(500_000);
  assertEquals(expandBraces(`{${dots}{a,b}}`), [`{${dots}a}`, `{${dots}b}`]);
  assertEquals(expandBraces("{..1}{\\{1..2}"), ["{..1}{\\{1..2}"]);
});

Deno.test("a glob pattern beyond a limit is refused, and the limit named", () => {
  const cases: [pattern: string, named: string][] = [
    ["a".repeat(20_000) + "*", "GLOB_LENGTH_MAX"],
    ["{a,b}".repeat(13), "GLOB_ALTERNATIVES_MAX"],
    [`{${"a,".repeat(GLOB_ALTERNATIVES_MAX)}b}`, "GLOB_ALTERNATIVES_MAX"],
    [`{${"a,".repeat(1000)}b}${"c".repeat(5000)}`, "GLOB_EXPANDED_LENGTH_MAX"],
    ["{a,".repeat(40) + "b" + "}".repeat(40), "32 levels"],
    ["part-{0..9}", "range"],
  ];
  for (const [pattern, named] of cases) {
    const error = assertThrows(() => parseGlobs(pattern, "paths"), LeatError) as LeatError;
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, named);
    assert(error.message.length < 500);
  }
  // An unclosed bracket or brace is literal, and recognized in one pass.
  for (const open of ["[", "{", "[{", "{[", "{,", "[!"]) {
    assert(matches(open.repeat(4000), open.repeat(4000)));
  }
});

Deno.test("StorageFiles.list of this machine's files ends once its signal is aborted", async () => {
  const files = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`${i}/${i}/file`, ""]));
  await withFiles(files, async (folder) => {
    const storage = new StorageFiles();
    for (const path of [folder, `file://${folder}`]) {
      const given = new AbortController();
      const listing = storage.list(`${path}/**/file`, given.signal);
      given.abort(new LeatError("cancelled", "nobody wants it"));
      const error = await assertRejects(() => listing, LeatError) as LeatError;
      assertEquals(error.code, "cancelled");
      assertEquals((await storage.list(`${path}/**/file`)).length, 30);
    }
  });
});
