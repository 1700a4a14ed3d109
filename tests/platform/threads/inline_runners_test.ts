/** Runners in the worker's own thread, with real files. */
import { Dataset } from "../../../mod.ts";
import { inlineRunners } from "../../../platform/threads/inline_runners.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

/** So many that a listing is not over as soon as it is given up. */
const FILES = 5_000;

const folder = await TempFolder.make();
// Not in the test: Deno fails it if a folder is still being listed at its end.
Deno.test.afterAll(() => folder[Symbol.asyncDispose]());

Deno.test("inline runners that are closed leave no folder being listed", async () => {
  for (let file = 0; file < FILES; file++) Deno.writeTextFileSync(`${folder.path}/${file}`, "");
  const graph = Dataset.listFiles(`${folder.path}/*`).serialize();
  const runners = inlineRunners({});
  const start = () =>
    runners.start(
      { ...{ graph, seed: "0".repeat(16), epoch: 0, splits: false, shared: false } },
      { next: () => Promise.resolve(null), total: () => Promise.resolve(0) },
    );
  // Loads all modules.
  await start().next();
  start().next();
  await new Promise((resolve) => setTimeout(resolve));
  await runners.close();
});
