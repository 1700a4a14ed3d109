/** A program whose Deno moves, as an upgrade does. */
import { assertEquals, assertStringIncludes } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

Deno.test({
  name: "ChildProcess says to restart a program whose Deno has moved, not to grant what it has",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    await using folder = await TempFolder.make();
    const other = `${folder.path}/deno`;
    await Deno.writeTextFile(other, "#!/bin/sh\n");
    await Deno.chmod(other, 0o755);
    const fixture = `${import.meta.dirname}/fixture_moved_deno.ts`;
    const permissions = ["--allow-run=deno", "--allow-env", "--allow-read", "--allow-write=/tmp"];
    const { stdout, stderr } = await new Deno.Command("deno", {
      args: ["run", "--no-prompt", "--no-check", ...permissions, fixture, folder.path],
    }).output();
    const [told, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
    assertStringIncludes(told!, "permission_denied", errors);
    assertStringIncludes(told!, "Restart this program");
    assertEquals(told!.includes("--allow-run"), false, told);
  },
});
