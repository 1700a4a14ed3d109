/** Functions that write files where a worker was started, for its Python processes to import. */
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { assertEquals, assertMatch } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";

Deno.test("a process for Python functions imports nothing of the folder that its worker was started in", async () => {
  await using folder = await TempFolder.make();
  await Deno.mkdir(join(folder.path, "leat"));
  await Deno.writeTextFile(join(folder.path, "leat", "__init__.py"), `raise SystemExit("planted")`);
  const fixture = fileURLToPath(import.meta.resolve("./fixture_python_call.ts"));
  const config = fileURLToPath(import.meta.resolve("../../deno.json"));
  const permissions = ["--allow-read", "--allow-write", "--allow-run=python3", "--no-prompt"];
  const args = ["run", "--quiet", `--config=${config}`, ...permissions, fixture];
  const child = new Deno.Command("deno", { args, cwd: folder.path });
  const { stdout } = await child.output();
  const said = new TextDecoder().decode(stdout);
  assertMatch(said, /python/i);
  assertEquals(said.includes("planted"), false, said);
});
