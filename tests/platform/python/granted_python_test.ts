/** Which Python files confined pipelines may call. */

import { LeatError } from "../../../core/error.ts";
import { GrantedPython } from "../../../platform/python/granted_python.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

/** The code of the error for a file that does not exist: a file that is not granted is not looked for. */
async function codeFor(file: string, root: string): Promise<string> {
  return (await refusalOf(file, root)).code;
}

async function refusalOf(file: string, ...roots: string[]): Promise<LeatError> {
  const granted = new GrantedPython(roots.map((path) => ({ path, realPath: path })), 1000);
  const pool = granted.open();
  const call = { file, name: "f", calls: new Uint8Array() };
  const error = await assertRejects(() => pool.run(call), LeatError);
  pool.close();
  return error;
}

Deno.test("GrantedPython calls files below a granted folder, which may be the root of all", async () => {
  assertEquals(await codeFor("/granted/missing.py", "/granted"), "not_found");
  assertEquals(await codeFor("/granted-not/missing.py", "/granted"), "permission_denied");
  assertEquals(await codeFor("/granted/../missing.py", "/granted"), "permission_denied");
  assertEquals(await codeFor("/granted/missing.py", "/"), "not_found");
});

/** Makes a symbolic link: Deno would need permission to write everywhere. */
async function link(target: string, path: string): Promise<void> {
  await new Deno.Command("sh", { args: ["-c", 'ln -s "$0" "$1"', target, path] }).output();
}

Deno.test({
  name:
    "GrantedPython tells nobody which files exist outside of a granted folder with links to there",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    await using folder = await TempFolder.make({ "outside/secret.py": "", "granted/f.txt": "" });
    const real = await Deno.realPath(folder.path);
    const granted = `${real}/granted`;
    await link(`${real}/outside`, `${granted}/link`);
    await link(`${real}/outside/secret.py`, `${granted}/to_file.py`);
    await link(`${real}/outside/none.py`, `${granted}/to_none.py`);
    const outside = [
      "link/secret.py",
      "link/none.py",
      "link/secret.py/none.py",
      "link/none/none.py",
      "to_file.py",
      "to_none.py",
      `link${"/a".repeat(100_000)}`,
    ];
    for (const name of outside) {
      const code = await codeFor(`${granted}/${name}`, granted);
      assertEquals(code, "permission_denied", name.slice(0, 40));
    }
    assertEquals(await codeFor(`${granted}/none/none.py`, granted), "not_found");
  },
});

Deno.test("GrantedPython refuses a URL without telling its user, password, query or fragment", async () => {
  const file = "https://user:secret@host/a.py?key=secret#secret";
  for (const folders of [[], ["/granted"]]) {
    const error = await refusalOf(file, ...folders);
    assertEquals(error.code, "permission_denied");
    assertEquals(error.message.includes("secret"), false, error.message);
    assertStringIncludes(error.message, "https://host/a.py?…");
  }
});
