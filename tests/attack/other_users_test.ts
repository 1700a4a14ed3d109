/** Other users of a dispatcher's host, who have no token, must read nothing of what it keeps. */
import { Dataset, registerDataset, serveDispatcher } from "../../mod.ts";
import { assertEquals } from "../assert.ts";
import { inFolder } from "../lib/temp_folder.ts";

const QUIET = { logLevel: "off" } as const;
const OTHERS = 0o077;

/** What others may do with the folder and its files. */
function open(folder: string): string[] {
  const paths = [folder, ...[...Deno.readDirSync(folder)].map(({ name }) => `${folder}/${name}`)];
  return paths.filter((path) => (Deno.statSync(path).mode! & OTHERS) !== 0);
}

/** The pipelines and the secrets of clients are in the journal. */
async function filled(journal: string): Promise<void> {
  await using dispatcher = await serveDispatcher({ ...QUIET, journal });
  await registerDataset(dispatcher.address, Dataset.range(3));
  assertEquals(open(journal), []);
}

Deno.test({
  name: "no other user of the host reads a dispatcher's journal, or one that was open to all",
  ignore: Deno.build.os === "windows",
  fn: () =>
    inFolder(async (folder) => {
      const journal = `${folder}/deep/journal`;
      await filled(journal);
      assertEquals(open(journal), [], "when it is closed");
      assertEquals(open(`${folder}/deep`), []);
      for (const { name } of Deno.readDirSync(journal)) Deno.chmodSync(`${journal}/${name}`, 0o644);
      await filled(journal);
    }),
});
