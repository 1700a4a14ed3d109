/** Modules with a pipeline for tests of cli/plan.ts. */
import type { Child } from "../../lib/child.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { join } from "node:path";

const MOD = new URL("../../../mod.ts", import.meta.url).href;

export const FLAGS = ["--no-prompt", "-P=plan"];

export async function withModule(
  code: string,
  use: (path: string) => Promise<void>,
): Promise<void> {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  const path = join(folder, "pipeline.ts");
  await Deno.writeTextFile(path, `import { Dataset } from ${JSON.stringify(MOD)};\n${code}`);
  await use(path);
}

/** The exit status; a process that would never end is killed. */
export async function codeOf(child: Child): Promise<number> {
  const patience = setTimeout(() => child.kill("SIGKILL"), 300_000);
  const { code } = await child.status;
  clearTimeout(patience);
  return code;
}
