/**
 * Data roots that hold Leat's own folder, as the current one of `deno task worker` does: what lies there is
 * read as elsewhere, and what confines functions stays out of their reach.
 *
 * @module
 */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { Dataset } from "../../mod.ts";
import { permissionsOf, programAccess, sandboxGrants } from "../../world/sandbox/grants.ts";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { evaluating, link, Sandbox } from "./sandbox_lib.ts";

const LEAT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const ROOMS = ["actors", "core", "data", "transport", "world"].map((room) => `${LEAT}/${room}`);

/** What a thread gives back once it has loaded, for some data roots. */
function givenBack(...dataRoots: string[]): readonly string[] {
  return programAccess(sandboxGrants({ dataRoots })).read;
}

Deno.test("programAccess leaves out what lies in a granted folder, as it is written or as a link leads", async () => {
  await using folder = await TempFolder.make();
  await link(LEAT, `${folder.path}/leat`);
  assertEquals(givenBack(`${LEAT}/tests/data`), ROOMS); // below
  assertEquals(givenBack(LEAT), []);
  assertEquals(givenBack(dirname(LEAT)), []); // above
  assertEquals(givenBack("/"), []);
  assertEquals(givenBack(`${folder.path}/leat`), []);
  assertEquals(givenBack(folder.path), ROOMS); // the link in it leads out
  assertEquals(givenBack(`${LEAT}/world`), ROOMS.slice(0, -1));
  assertEquals(givenBack(`${LEAT}/world/sandbox`), ROOMS); // its own grant outlives that of the room
  const grants = sandboxGrants({ dataRoots: [LEAT] });
  assertEquals(permissionsOf(grants, programAccess(grants)).read, [LEAT, LEAT]);
});

Deno.test("a confined thread reads below a data root that holds its own program, and does not reach what confines it", async () => {
  const outside = await Deno.makeTempFile({ prefix: "leat-outside-" });
  await using sandbox = await Sandbox.open({}, () => ({ dataRoots: [LEAT] }));
  const module = (path: string) => `import("file://${LEAT}/${path}")`;
  const [line, text, error, ...denied] = await sandbox.elementsOf(
    Dataset.textLines(`${LEAT}/LICENSE`).take(1),
    evaluating([
      `Deno.readTextFileSync("${LEAT}/core/error.ts").includes("class LeatError")`,
      `${module("core/error.ts")}.then((module) => typeof module.LeatError)`,
      `Deno.readTextFileSync("${outside}")`,
      `Deno.writeTextFileSync("${LEAT}/new.txt", "x")`,
      // These hold what was shut off on the thread, and would read where a link leads out.
      module("world/sandbox/module_source.ts"),
      module("world/sandbox/lockdown.ts?again"),
      module("world/sqlite_log.ts"),
    ]),
  );
  await Deno.remove(outside);
  assertEquals([line, text, error], [
    { value: "MIT License" },
    { value: true },
    { value: "function" },
  ]);
  assertEquals(denied.length, 5);
  const remedies = ["--data-root=", "--allow-write=", "confines", "confines", "confines"];
  for (const [i, came] of denied.entries()) {
    assert("code" in came, Deno.inspect(came));
    assertEquals(came.code, "permission_denied", came.message);
    assertStringIncludes(came.message, remedies[i]!);
  }
});

Deno.test("a confined thread reads below a data root that is a link to its own program's folder", async () => {
  await using folder = await TempFolder.make();
  const root = `${folder.path}/leat`;
  await link(LEAT, root);
  await using sandbox = await Sandbox.open({}, () => ({ dataRoots: [root] }));
  const lines = [root, LEAT].map((path) => Dataset.textLines(`${path}/LICENSE`).take(1));
  assertEquals(await sandbox.elementsOf(...lines), [
    { value: "MIT License" },
    { value: "MIT License" },
  ]);
});
