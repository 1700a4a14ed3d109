/**
 * Leat in a separate project, set up as README.md says: with the types and packages found from
 * there.
 */

import { assert, assertEquals } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";

const ROOT = new URL("../../", import.meta.url);

/** The first block of that language below a heading of README.md. */
function blockBelow(readme: string, heading: string, language: string): string {
  const [, below] = readme.split(`## ${heading}\n`);
  const block = below?.match(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\``, "m"))?.[1];
  assert(block !== undefined, `README.md has no ${language} below "${heading}"`);
  return block;
}

Deno.test("README.md's import of Leat into another project passes a strict type check and runs, also for copied examples", async () => {
  const readme = await Deno.readTextFile(new URL("README.md", ROOT));
  const config = JSON.parse(
    blockBelow(readme, "Importing Leat into a project of your own", "json"),
  );
  assertEquals(Object.keys(config.imports), ["@leat/leat"]);
  assertEquals(config.links.length, 1);
  const program = blockBelow(readme, "In training code", "ts").replace("./mod.ts", "@leat/leat");
  const example = await Deno.readTextFile(new URL("examples/custom_format.ts", ROOT));

  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  // The lock file fixes the packages' versions, so no registry is asked.
  await Deno.copyFile(new URL("deno.lock", ROOT), `${folder}/deno.lock`);
  // The project's options hold for the types of Leat, too.
  const compilerOptions = {
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noUnusedLocals: true,
    noUnusedParameters: true,
    ...config.compilerOptions,
  };
  const linked = { ...config, links: [`${import.meta.dirname}/../..`], compilerOptions };
  await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify(linked));
  await Deno.writeTextFile(`${folder}/train.ts`, program);
  const copied = example.replace("../mod.ts", "@leat/leat");
  await Deno.writeTextFile(`${folder}/custom_format.ts`, copied);

  const run = async (...args: string[]) => {
    const command = new Deno.Command("deno", { args, cwd: folder, env: { NO_COLOR: "1" } });
    const { code, stdout, stderr } = await command.output();
    assertEquals(code, 0, new TextDecoder().decode(stderr));
    return new TextDecoder().decode(stdout).trim();
  };
  await run("check", "--quiet", "train.ts", "custom_format.ts");
  assertEquals(
    await run("run", "--quiet", "--no-prompt", "--allow-read", "train.ts"),
    "1000 rows",
  );
  const flags = ["--quiet", "--no-prompt", "--allow-read", "--allow-write=/tmp,/var/folders"];
  assertEquals(
    (await run("run", ...flags, "custom_format.ts")).split("\n").at(-1),
    "3000 measurements",
  );
});
