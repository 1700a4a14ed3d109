/** Programs that another one runs: they end with it. */
import { assertEquals } from "../../assert.ts";
import { startChild } from "../../lib/child.ts";
import { withFiles } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";

const MODULE = JSON.stringify(import.meta.resolve("../../../platform/process/output_of.ts"));

/** Returns the exit status of a line of shell. */
async function shell(line: string): Promise<number> {
  return (await new Deno.Command("sh", { args: ["-c", line], stderr: "null" }).output()).code;
}

Deno.test("outputOf ends its program when this one exits", async () => {
  await withFiles({
    "program.ts": `
      import { outputOf } from ${MODULE};
      outputOf("sh", { args: ["-c", 'echo $$ > "$0"; exec tail -f /dev/null', Deno.args[0]] });
      for await (const _ of Deno.stdin.readable) Deno.exit(3);`,
    "pid": "",
  }, async (folder) => {
    await using child = startChild(`${folder}/program.ts`, {
      args: [`${folder}/pid`],
      flags: ["-P", "--allow-run", "--no-check"],
    });
    const pid = await until(() => /^\d+(?=\n)/.exec(Deno.readTextFileSync(`${folder}/pid`))?.[0]);
    try {
      await child.write("exit\n");
      assertEquals((await child.status).code, 3);
      await until(async () => await shell(`kill -0 ${pid}`) !== 0);
    } catch (error) {
      await shell(`kill ${pid}`);
      throw error;
    }
  });
});
