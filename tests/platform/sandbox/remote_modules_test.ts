/** Which remote modules are fetched, and how often a function's module is loaded for it. */
import { LeatError } from "../../../core/error.ts";
import { RemoteModules } from "../../../platform/sandbox/modules/remote_modules.ts";
import { assertEquals } from "../../assert.ts";

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const urlOf = (name: string) => `https://modules.example/${name}.js`;

const messageOf = (error: unknown) => LeatError.from(error).message;

const moduleAt = (url: string) => ({ url, mediaType: "", text: url });

/** Loads modules of which each names the next. Reports a failure after `delay`, as Deno does late. */
async function load(
  remote: RemoteModules,
  names: string,
  delay: () => Promise<unknown>,
): Promise<string[]> {
  const texts: string[] = [];
  for (const name of names) {
    await pause(0);
    try {
      texts.push(remote.moduleAt(urlOf(name)).text);
    } catch (error) {
      await delay();
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
      return await remote.import(() => load(remote, names, () => pause(10)));
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
  const broken = remote.import(() => load(remote, "ax", () => pause(1)));
  const whole = remote.import(() => load(remote, "abc", () => pause(1)));
  // These fail at first, long after the first import has missed x.
  const hasFailed = broken.catch(() => {});
  const late = remote.import(() => load(remote, "ad", () => hasFailed));
  const own = remote.import(async () => {
    await hasFailed;
    throw new Error("an error of the module itself");
  });
  assertEquals(
    await Promise.all([broken, whole, late, own].map((load) => load.catch(messageOf))),
    [
      "no such module",
      [..."abc"].map(urlOf),
      [..."ad"].map(urlOf),
      "an error of the module itself",
    ],
  );
});
