/** `distributedSave` by worker processes that are killed, and whose functions are confined. */
import { Dataset, distributedSave, LeatError } from "../../mod.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { all, soon, SOON_GIVEN_UP, startDispatcher, startWorkers } from "./lib.ts";
import { TempFolder } from "../lib/temp_folder.ts";

Deno.test("a save by worker processes, one of them killed by SIGKILL, has each element once", async () => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  const path = `${folder}/saved`;
  const dataset = Dataset.range(6_000).map((x) => {
    // Slow enough for a kill in the middle.
    let spins = 0;
    while (spins < 20_000) spins++;
    return spins > 0 ? x : -1;
  });
  await using dispatcher = await startDispatcher(...SOON_GIVEN_UP);
  const grant = ["--data-root", folder, "--allow-write", folder];
  const workers = await startWorkers(dispatcher, 2, ...grant);
  await using _workers = all(workers);
  const victim = workers[0]!.child;
  const saving = distributedSave(dataset, path, dispatcher.address);
  const growing = await Dataset.load<number>(path, { wait: { pollMs: 5 } });
  const came: number[] = [];
  const reading = (async () => {
    for await (const x of growing) if (came.push(x) === 1) victim.kill("SIGKILL");
  })();
  await soon("the save", Promise.all([saving, reading]));
  assertEquals((await victim.status).signal, "SIGKILL");
  assertEquals(came, Array.from({ length: 6_000 }, (_, i) => i));
  assertEquals(await Array.fromAsync(await Dataset.load(path)), came);
  const left = (await Array.fromAsync(Deno.readDir(path))).map(({ name }) => name);
  assertEquals(left.filter((name) => !name.endsWith(".tfrecord")), ["DONE"]);

  const elsewhere = `${folder}-not-granted`;
  const save = () => distributedSave(dataset, elsewhere, dispatcher.address);
  const error = await soon("the refusal", assertRejects(save, LeatError));
  assertEquals(error.code, "permission_denied");
  for (const part of ['Worker "w2"', elsewhere, "--allow-write"]) {
    assertStringIncludes(error.message, part);
  }
});
