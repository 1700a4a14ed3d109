/**
 * The modules that threads load when they start. Each thread has its own copy, so every import of a
 * runner's program is read, compiled and run again for every thread of every worker: what only some
 * pipelines need is imported lazily.
 */
import { assert, assertEquals } from "../../assert.ts";

/** A module in `deno info --json`; type-only imports are left out. */
interface Module {
  readonly specifier: string;
  readonly dependencies?: readonly {
    readonly code?: { readonly specifier: string };
    readonly isDynamic?: boolean;
  }[];
}

/** These modules of node take a thread longer to load than all of Leat. */
const HEAVY_BUILTINS = /^node:(crypto|fs|fs\/promises|process|stream|zlib)$/;

/**
 * The modules that `program` loads: its imports and theirs, except `import()`.
 *
 * @param late Includes those, which Deno processes at once, but does not run before they are
 * called.
 */
async function loadedBy(program: string, late = false): Promise<string[]> {
  const { stdout, success } = await new Deno.Command("deno", {
    args: ["info", "--json", "--frozen", new URL(`../../../${program}`, import.meta.url).href],
    env: { DENO_NO_UPDATE_CHECK: "1" },
    stderr: "inherit",
  }).output();
  assert(success);
  const { modules, roots } = JSON.parse(new TextDecoder().decode(stdout)) as {
    readonly modules: readonly Module[];
    readonly roots: readonly string[];
  };
  const known = new Map(modules.map((module) => [module.specifier, module]));
  const loaded = new Set(roots);
  for (const specifier of loaded) {
    for (const { code, isDynamic } of known.get(specifier)?.dependencies ?? []) {
      if (code !== undefined && (late || isDynamic !== true)) loaded.add(code.specifier);
    }
  }
  return [...loaded];
}

/** The packages among modules, by name. */
function packagesOf(modules: readonly string[]): string[] {
  const names = modules.map((specifier) => /^npm:\/?((?:@[^/]+\/)?[^@/]+)/.exec(specifier)?.[1]);
  return [...new Set(names.filter((name) => name !== undefined))].sort();
}

Deno.test("a runner's thread loads no more modules than its budget, and no package of a single format", async () => {
  const modules = await loadedBy("platform/threads/runner_thread.ts");
  assert(modules.length <= 282, `a runner's thread loads ${modules.length} modules`);
  assertEquals(packagesOf(modules), [
    "@bufbuild/protobuf",
    "acorn",
    "comlink",
    "eslint-scope",
    "fft.js",
    "msgpackr",
  ]);
});

Deno.test("the thread of a node loads what every node needs, and no role before its start", async () => {
  const modules = [
    ...await loadedBy("platform/threads/thread_entry.ts"),
    ...await loadedBy("server/service_thread.ts"),
  ];
  const all = new Set(modules);
  assert(all.size <= 106, `a node's thread loads ${all.size} modules`);
  assertEquals(packagesOf(modules), ["comlink", "msgpackr", "valibot"]);
  for (const role of ["dispatcher", "worker"]) {
    modules.push(...await loadedBy(`server/${role}_role.ts`));
  }
  assertEquals(modules.filter((specifier) => HEAVY_BUILTINS.test(specifier)), []);
});

Deno.test("the thread of a node does not process the modules of other roles", async () => {
  const modules = await loadedBy("server/service_thread.ts", true);
  assert(modules.length <= 80, `a node's thread looks through ${modules.length} modules`);
});

Deno.test("the launcher of a confined process loads only Leat's own modules", async () => {
  const modules = await loadedBy("platform/sandbox/guards/launcher.ts");
  assertEquals(modules.filter((specifier) => !specifier.startsWith("file:")), []);
});

Deno.test("a trainer's thread loads neither dispatcher nor worker", async () => {
  const modules = await loadedBy("mod.ts");
  const serving = /\/actors\/(dispatcher|worker)\/(dispatcher|state|worker|task)\.ts$/;
  assertEquals(modules.filter((specifier) => serving.test(specifier)), []);
  assert(modules.length <= 428, `a trainer's thread loads ${modules.length} modules`);
});
