/** Programs that start others on a machine that sets variables of the dynamic loader. */
import { assertEquals } from "../../assert.ts";

Deno.test({
  name: "a program with the loader's variables may start those that it is allowed to",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    const fixture = `${import.meta.dirname}/fixture_loader_variables.ts`;
    for (const flag of ["--allow-run=sh", "--allow-run"]) {
      const shell =
        `LD_LIBRARY_PATH=/nowhere LD_GOLD=/nowhere/ld.gold exec deno run --no-check ${flag} "${fixture}"`;
      const { stdout, stderr } = await new Deno.Command("sh", { args: ["-c", shell] }).output();
      const [out, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
      assertEquals(out, "started\n", errors);
    }
  },
});
