/** Which remote modules are fetched, and how often a function's module is loaded for it. */
import { LeatError } from "../../../core/error.ts";
import { RemoteModules } from "../../../platform/sandbox/modules/remote_modules.ts";
import { assertEquals, assertRejects } from "../../assert.ts";

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const urlOf = (name: string) => `https://modules.example/${name}.js`;

const moduleAt = (url: string) => ({ url, mediaType: "", text: url });

/** Loads modules of which each names the next, and reports failures as late as Deno does. */
async function load(remote: RemoteModules, names: string, waitMs: number): Promise<string[]> {
  const texts: string[] = [];
  for (const name of names) {
    await pause(0);
    try {
      texts.push(remote.moduleAt(urlOf(name)).text);
    } catch (error) {
      await pause(waitMs);
      throw error;
    }
  }
  return texts;
}

Deno.test("RemoteModules fetches the missing modules of several concurrent loads", async () => {
  const remote = new RemoteModules(async (url) => {
    await pause(1);
    return moduleAt(url);
  });
  const chains = ["abcd", "abcd", "ab", "efgh", "ei", "abcd"];
  const came = await Promise.all(
    chains.map(async (names, i) => {
      await pause(4 * i);
      return await remote.import(() => load(remote, names, 10));
    }),
  );
  assertEquals(came, chains.map((names) => [...names].map(urlOf)));
});

Deno.test("RemoteModules fails only the loads whose modules cannot be fetched", async () => {
  const remote = new RemoteModules(async (url) => {
    await pause(1);
    if (url === urlOf("x")) throw new LeatError("not_found", "no such module");
    return moduleAt(url);
  });
  const broken = remote.import(() => load(remote, "ax", 1));
  const whole = remote.import(() => load(remote, "abc", 1));
  // Its first load fails long after the other import has missed x.
  const late = remote.import(() => load(remote, "ad", 60));
  const unrelated = new Error("an error of the module itself");
  const own = remote.import(async () => {
    await pause(60);
    throw unrelated;
  });
  assertEquals((await assertRejects(() => broken, LeatError)).message, "no such module");
  assertEquals(await whole, [..."abc"].map(urlOf));
  assertEquals(await late, [..."ad"].map(urlOf));
  assertEquals(await own.catch((error) => error), unrelated);
});
