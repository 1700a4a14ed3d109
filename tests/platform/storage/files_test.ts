/** Files on Deno: real files in a temporary folder. */

import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import type { Files } from "../../../data/host.ts";
import { DenoFiles, withStorageLatency } from "../../../platform/storage/files.ts";
import { withFiles } from "../../lib/temp_folder.ts";

Deno.test("DenoFiles reads at any offset, in any order", async () => {
  const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i % 251);
  await withFiles({ data: bytes }, async (folder) => {
    const file = await new DenoFiles().open(`${folder}/data`);
    assertEquals(file.sizeBytes, 1000);
    const into = new Uint8Array(100);
    for (const offset of [0, 100, 900, 37, 37, 137]) {
      assertEquals(await file.read(into, offset), 100);
      assertEquals(into, bytes.slice(offset, offset + 100), `offset ${offset}`);
    }
    assertEquals(await file.read(into, 950), 50);
    assertEquals(await file.read(into, 1000), 0);
    assertEquals(await file.read(into, 5000), 0);
    file.close();
    file.close();
    const error = assertThrows(() => file.read(into, 0), LeatError) as LeatError;
    assertEquals(error.code, "failed_precondition");
  });
});

Deno.test("DenoFiles.open names the path and the reason", async () => {
  await withFiles({ "folder/file": "x" }, async (folder) => {
    const files = new DenoFiles();
    const cases: [string, string][] = [
      [`${folder}/missing`, "not_found"],
      [`${folder}/folder`, "invalid_argument"],
      [`${folder}/folder/file/below`, "not_found"],
      [`${folder}/${"n".repeat(300)}`, "invalid_argument"],
    ];
    for (const [path, code] of cases) {
      const error = await assertRejects(() => files.open(path), LeatError) as LeatError;
      assertEquals(error.code, code, path);
      assertStringIncludes(error.message, path);
    }
  });
});

Deno.test("DenoFiles.open says of a relative path where it starts", async () => {
  const files = new DenoFiles();
  const error = await assertRejects(() => files.open("no/such.txt"), LeatError) as LeatError;
  assertEquals(error.code, "not_found");
  assertStringIncludes(error.message, "starts at the current folder of its process");
});

Deno.test({
  name: "DenoFiles.open refuses a path that the program has no permission for",
  permissions: { read: false },
  fn: async () => {
    const error = await assertRejects(() => new DenoFiles().open("/etc/hostname"), LeatError);
    assertEquals((error as LeatError).code, "permission_denied");
  },
});

Deno.test("DenoFiles.list finds what the pattern matches, sorted", async () => {
  const names = [
    "10.txt",
    "9.txt",
    ".hidden.txt",
    "a/1.txt",
    "a/2.rec",
    "a/b/3.txt",
    "a/b/c/4.txt",
  ];
  const odd = ["[x].txt", "a/s p.txt", "é.txt", "b/1.txt", ".git/5.txt", "a*b/6.txt"];
  odd.push("[0]/[1].rec", "[0]/{2}.rec", "[0]/3.rec");
  const all = Object.fromEntries([...names, ...odd].map((name) => [name, ""]));
  await withFiles(all, async (folder) => {
    const cases: [pattern: string, ...found: string[]][] = [
      ["*.txt", "10.txt", "9.txt", "[x].txt", "é.txt"],
      ["?.txt", "9.txt", "é.txt"],
      ["[0-9]*.txt", "10.txt", "9.txt"],
      ["[[]x].txt", "[x].txt"],
      ["\\[x\\].txt", "[x].txt"],
      [".*.txt", ".hidden.txt"],
      ["*/1.txt", "a/1.txt", "b/1.txt"],
      ["{a,b}/1.txt", "a/1.txt", "b/1.txt"],
      ["a/{b/3,1}.txt", "a/1.txt", "a/b/3.txt"],
      ["a/{b/c,b}/*.txt", "a/b/3.txt", "a/b/c/4.txt"],
      ["a/**", "a/1.txt", "a/2.rec", "a/b/3.txt", "a/b/c/4.txt", "a/s p.txt"],
      ["a/**/*.txt", "a/1.txt", "a/b/3.txt", "a/b/c/4.txt", "a/s p.txt"],
      ["a/**/c/*.txt", "a/b/c/4.txt"],
      ["**/6.txt", "a*b/6.txt"],
      ["a\\*b/*", "a*b/6.txt"],
      ["a/1.txt", "a/1.txt"],
      ["\\[0\\]/*.rec", "[0]/3.rec", "[0]/[1].rec", "[0]/{2}.rec"],
      ["\\[*\\]/\\[*\\].rec", "[0]/[1].rec"],
      ["*/\\{*\\}.rec", "[0]/{2}.rec"],
      ["\\[0\\]/\\{*\\}.rec", "[0]/{2}.rec"],
      ["*/\\[*.rec", "[0]/[1].rec"],
      ["**/\\[[0-9]\\].rec", "[0]/[1].rec"],
      ["\\[0\\]/{\\[1\\],3}.rec", "[0]/3.rec", "[0]/[1].rec"],
      ["\\[0\\]/\\{2\\}.rec", "[0]/{2}.rec"],
      ["a/s p.txt", "a/s p.txt"],
      ["a"],
      ["a/"],
      ["nothing/*"],
      ["9.txt/*"],
      ["*.none"],
    ];
    const files = new DenoFiles();
    for (const [pattern, ...found] of cases) {
      assertEquals(
        await files.list(`${folder}/${pattern}`),
        found.map((name) => `${folder}/${name}`),
        pattern,
      );
    }
  });
});

/** Creates links in a program of its own, because that needs permission for the whole disk. */
async function link(folder: string, links: Record<string, string>): Promise<void> {
  const make = `for (const [name, target] of Object.entries(${JSON.stringify(links)})) {
    Deno.symlinkSync(target, ${JSON.stringify(folder)} + "/" + name);
  }`;
  const { success } = await new Deno.Command("deno", { args: ["eval", make] }).output();
  assert(success, "making links failed");
}

Deno.test("DenoFiles.list follows links, but ** enters no linked folder", async () => {
  const names = ["a/1.txt", "b/1.txt"];
  await withFiles(Object.fromEntries(names.map((name) => [name, ""])), async (folder) => {
    await link(folder, {
      "b/link": "../a",
      "b/up": "..",
      "b/also.txt": "1.txt",
      "b/dangling.txt": "nowhere",
      "b/circle.txt": "circle.txt",
    });
    const cases: [pattern: string, ...found: string[]][] = [
      ["b/*.txt", "b/1.txt", "b/also.txt"],
      ["b/**/*.txt", "b/1.txt", "b/also.txt"],
      ["b/link/*.txt", "b/link/1.txt"],
      ["b/*/1.txt", "b/link/1.txt"],
      ["b/up/*/link/1.txt", "b/up/b/link/1.txt"],
      ["*/l*/**/*.txt", "b/link/1.txt"],
      ["b/*/**/1.txt", "b/link/1.txt", "b/up/a/1.txt", "b/up/b/1.txt"],
      ["**/up/**/a/*.txt", "b/up/a/1.txt"],
      ["**/*/**/1.txt", "a/1.txt", "b/1.txt", "b/link/1.txt", "b/up/a/1.txt", "b/up/b/1.txt"],
    ];
    for (const [pattern, ...found] of cases) {
      assertEquals(
        await new DenoFiles().list(`${folder}/${pattern}`),
        found.map((name) => `${folder}/${name}`),
        pattern,
      );
    }
  });
});

Deno.test("DenoFiles.list returns paths relative to the current folder, like the pattern", async () => {
  const files = new DenoFiles();
  assertEquals(await files.list("tests/platform/storage/files_t*.ts"), [
    "tests/platform/storage/files_test.ts",
  ]);
  assertEquals(await files.list("./tests/platform/storage/files_t*.ts"), [
    "./tests/platform/storage/files_test.ts",
  ]);
  assert((await files.list("*.json")).includes("deno.json"));
});

/** The same files, which note what they are asked. */
function noting(files: Files, asked: string[]): Files {
  return {
    list(pattern) {
      asked.push("list");
      return files.list(pattern);
    },
    async open(path) {
      asked.push("open");
      const file = await files.open(path);
      return {
        sizeBytes: file.sizeBytes,
        read(into, offset) {
          asked.push(`read ${into.length} at ${offset}`);
          return file.read(into, offset);
        },
        close: () => file.close(),
      };
    },
  };
}

Deno.test("withStorageLatency delays every request, and requests wait concurrently", async () => {
  await withFiles({ data: "0123456789" }, async (folder) => {
    const asked: string[] = [];
    const far = withStorageLatency(noting(new DenoFiles(), asked), 5);
    const opening = far.open(`${folder}/data`);
    assertEquals(asked, []);
    const file = await opening;
    assertEquals(asked.splice(0), ["open"]);
    const first = new Uint8Array(4), second = new Uint8Array(4);
    const reads = [file.read(first, 0), file.read(second, 4)];
    assert(reads.every((read) => read instanceof Promise));
    assertEquals(asked, []);
    assertEquals(await Promise.all(reads), [4, 4]);
    assertEquals(new TextDecoder().decode(first) + new TextDecoder().decode(second), "01234567");
    assertEquals(asked.splice(0), ["read 4 at 0", "read 4 at 4"]);
    file.close();
    const listing = far.list(`${folder}/*`);
    assertEquals(asked, []);
    assertEquals(await listing, [`${folder}/data`]);
    assertEquals(asked, ["list"]);
    await assertRejects(() => far.open(`${folder}/missing`), LeatError);
  });
});

Deno.test("withStorageLatency refuses invalid durations", () => {
  for (const ms of [-1, NaN, Infinity, 2 ** 31]) {
    assertThrows(() => withStorageLatency(new DenoFiles(), ms), LeatError);
  }
});
