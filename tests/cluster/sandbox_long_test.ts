/** Worker processes, whose functions are confined by default. */
import { shellWord } from "../../core/shown_text.ts";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { Dataset, LeatError, udf } from "../../mod.ts";
import { assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { ModuleHost } from "../platform/sandbox/module_host.ts";
import { link } from "../platform/sandbox/sandbox_lib.ts";
import { all, soon, startDispatcher, startWorkers } from "./lib.ts";
import { TempFolder } from "../lib/temp_folder.ts";

/**
 * The result of each element on a worker of the service: a value, or code and message of its error.
 */
async function read(service: string, dataset: Dataset<unknown>): Promise<unknown[]> {
  const read = async () => {
    await using iterator = dataset.distribute({ service, processingMode: "DYNAMIC" }).iterator();
    const came: unknown[] = [];
    for (;;) {
      try {
        const { done, value } = await iterator.next();
        if (done) return came;
        came.push(value);
      } catch (error) {
        const { code, message } = LeatError.from(error);
        came.push({ code, message });
      }
    }
  };
  return await soon("the job", read());
}

/** A file that a worker may read, and its functions only with a grant. */
const OUTSIDE = fileURLToPath(import.meta.resolve("../../LICENSE"));

Deno.test("an access that was not granted fails only its element", async () => {
  await using dispatcher = await startDispatcher();
  await using _workers = all(await startWorkers(dispatcher, 1, "--data-root", "tests/data"));
  const { address } = dispatcher;
  const asking = Dataset.range(3).map((x) =>
    x === 1 ? globalThis.fetch("http://evil.example/") : x
  );
  const [zero, denied, two] = await read(address, asking) as [unknown, LeatError, unknown];
  assertEquals([zero, two], [0, 2]);
  assertEquals(denied.code, "permission_denied");
  assertMatch(
    denied.message,
    /^map \(operator 0 of those on the worker\): .* at element 1 of those .* \(.*fetch\("http:\/\/evil.example\/"\)/,
  );
  assertStringIncludes(denied.message, 'net access to "evil.example:80"');
  assertStringIncludes(denied.message, "--allow-net=evil.example:80");
  const [line] = await read(address, Dataset.textLines(OUTSIDE)) as [LeatError];
  assertEquals(line.code, "permission_denied");
  assertStringIncludes(line.message, `--data-root=${shellWord(dirname(OUTSIDE))}`);
  // A function may end its own process, which ends its own job.
  for (const code of ["Deno.exit(1)", "process.abort()", "process.kill(process.pid, 'SIGKILL')"]) {
    const ending = Dataset.from([code]).map((code) => new Function(code)());
    const came = await read(address, ending) as LeatError[];
    assertMatch(came.map(({ message }) => message).join(), /The runner is gone/, code);
  }
  assertEquals(await read(address, Dataset.range(3)), [0, 1, 2]);
});

Deno.test("a worker reads below the folder that it was started in, Leat's own one as well", async () => {
  await using dispatcher = await startDispatcher();
  const { address } = dispatcher;
  await using worker = startChild("worker", {
    command: "task",
    args: ["--dispatcher", address, "--port", "0"],
  });
  await worker.line(/listening on/);
  const first = Dataset.textLines(OUTSIDE).take(1);
  const [line, denied] = await read(address, first.concatenate(Dataset.textLines("/etc/passwd")));
  assertEquals(line, "MIT License");
  assertEquals((denied as LeatError).code, "permission_denied");
});

Deno.test("functions come from data roots, and from hosts that were granted", async () => {
  const module = "export const half = (x: number): number => x / 2;";
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const found = request.url.endsWith("/functions.ts");
    const headers = { "content-type": "application/typescript" };
    return new Response(found ? module : "", { status: found ? 200 : 404, headers });
  });
  const host = `127.0.0.1:${server.addr.port}`;
  await using dispatcher = await startDispatcher();
  const { address } = dispatcher;
  await using other = new ModuleHost({ "/f.js": "export const half = (x) => x;" });
  await using redirecting = new ModuleHost({
    "/latest.js": "to /newest",
    "/newest": "to /v1/mod.js",
    "/v1/mod.js": 'import { one } from "./dep.js"; import { two } from "/deep/dep";' +
      "export const half = () => [one, two, import.meta.url];",
    "/v1/dep.js": "export const one = 1;",
    "/deep/dep": "to v2/dep",
    "/deep/v2/dep": 'export { two } from "./two";',
    // As TypeScript it would be a call with one argument.
    "/deep/v2/two": "const [a, b, c, d] = [1, 2, 3, 4];" +
      "export const two = ((...all) => all.length)(a<b,c>(d));",
    "/away.js": `to http://${other.name}/f.js`,
  });
  await using folder = await TempFolder.make({ "rows.csv": "a\n1\n2\n" });
  await using worker = startChild("cli/worker.ts", {
    flags: ["-P=server", "--frozen"],
    args: [
      ...["--dispatcher", address, "--data-root", "tests/data/udf", "--data-root", folder.path],
      ...["--allow-udf-import", host, "--allow-udf-import", redirecting.name],
    ],
  });
  await worker.line(/listening on/);
  type F = (x: number) => number;
  const local = udf<F>(import.meta.resolve("../data/udf/fixture_functions.ts"), "double");
  const remote = udf<F>(`http://${host}/functions.ts`, "half");
  assertEquals(await read(address, Dataset.range(3).map(local).map(remote)), [0, 1, 2]);
  // Its reader is a package, which is loaded now.
  const rows = Dataset.csv(`${folder.path}/rows.csv`).map(({ a }) => Number(a));
  assertEquals(await read(address, rows.map(remote)), [0.5, 1]);
  const missing = udf<F>(`http://${host}/none.ts`, "half");
  const [error] = await read(address, Dataset.range(1).map(missing)) as [LeatError];
  assertEquals(error.code, "not_found");
  const latest = udf<(x: number) => unknown>(`http://${redirecting.name}/latest.js`, "half");
  const place = `http://${redirecting.name}/v1/mod.js`;
  assertEquals(await read(address, Dataset.range(1).map(latest)), [[1, 2, place]]);
  const away = udf<F>(`http://${redirecting.name}/away.js`, "half");
  const [denied] = await read(address, Dataset.range(1).map(away)) as [LeatError];
  assertEquals(denied.code, "permission_denied");
  assertStringIncludes(denied.message, `--allow-udf-import=${other.name}`);
  assertEquals(other.asked, []);
  await server.shutdown();
});

Deno.test("a function's module that names packages makes its worker contact no registry", async () => {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "leat-modules-" }));
  const modules: Record<string, string> = {
    "types.ts": 'import type { A } from "npm:leat-a"; enum B { C = 4 } export const f = () => B.C;',
    "package.ts": 'import "npm:leat-a"; export const f = (x: number): number => x;',
    "escaped.js": 'import "\\x6epm:leat-a"; export const f = (x) => x;',
    "deep.ts": 'export { f } from "./package.ts";',
    "posing.ts": 'import f from "./package.ts" with { type: "json" }; export { f };',
    "late.ts": 'export const f = () => import("jsr:@leat/a");',
    "capital.js": 'import "NPM:leat-a"; export const f = (x) => x;',
    "bare.ts": 'import "linkedom"; export const f = (x: number): number => x;',
    "meta.ts": 'import t from "./bare.ts" with { type: "text" }; export const f = (): boolean => ' +
      'import.meta.url.startsWith("file:///") && import.meta.filename === ' +
      'import.meta.resolve("./meta.ts").slice(7) && t.includes("linkedom");',
  };
  for (const [name, text] of Object.entries(modules)) {
    await Deno.writeTextFile(`${folder}/${name}`, text);
  }
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => {
    return new Response('export * from "jsr:@leat/a"; export const f = (x: number) => x;');
  });
  const granted = `127.0.0.1:${server.addr.port}`;
  const urls = [
    ...Object.keys(modules).map((name) => `file://${folder}/${name}`),
    'data:text/javascript,import "npm:leat-a"; export const f = (x) => x',
    `data:text/javascript;base64,${btoa('import "jsr:@leat/a"; export const f = (x) => x')}`,
    `http://${granted}/functions.ts`,
  ];
  // A proxy between the worker and everything beyond this host.
  const asked: string[] = [];
  const proxy = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const listening = (async () => {
    for await (const connection of proxy) {
      const request = new Uint8Array(1_024);
      const length = await connection.read(request) ?? 0;
      asked.push(new TextDecoder().decode(request.subarray(0, length)).split("\r\n")[0]!);
      connection.close();
    }
  })();
  const through = `http://127.0.0.1:${proxy.addr.port}`;
  await using dispatcher = await startDispatcher();
  await using worker = startChild("cli/worker.ts", {
    flags: ["-P=server", "--frozen"],
    args: [
      "--dispatcher",
      dispatcher.address,
      "--data-root",
      folder,
      "--allow-udf-import",
      granted,
    ],
    env: {
      HTTPS_PROXY: through,
      HTTP_PROXY: through,
      NO_PROXY: "127.0.0.1",
      DENO_NO_UPDATE_CHECK: "1",
    },
  });
  await worker.line(/listening on/);
  asked.length = 0; // what it asked for itself
  const all = urls.map((url) => Dataset.range(1).map(udf<(x: number) => unknown>(url, "f")));
  const came = await read(dispatcher.address, all.reduce((all, one) => all.concatenate(one)));
  assertEquals(asked, []);
  assertEquals(came.length, urls.length);
  for (const [i, made] of came.entries()) {
    if (urls[i]!.endsWith("types.ts")) assertEquals(made, 4);
    else if (urls[i]!.endsWith("meta.ts")) assertEquals(made, true);
    else {assertMatch(
        (made as LeatError).message,
        /cannot be imported here|load no packages/,
        urls[i],
      );}
  }
  proxy.close();
  await listening;
  await server.shutdown();
  await Deno.remove(folder, { recursive: true });
});

Deno.test("without its sandbox a worker's functions may do what the worker may", async () => {
  await using dispatcher = await startDispatcher();
  await using _workers = all(await startWorkers(dispatcher, 1, "--no-sandbox"));
  const lines = await read(dispatcher.address, Dataset.textLines(OUTSIDE));
  assertEquals(lines, (await Deno.readTextFile(OUTSIDE)).trimEnd().split("\n"));
});

Deno.test("a task's loop that allocates is ended at the limit of memory", async () => {
  await using dispatcher = await startDispatcher();
  const { address } = dispatcher;
  const limits = ["--function-heap-mib", "96", "--function-timeout-ms", "60000"];
  await using worker = startChild("worker", {
    command: "task",
    args: ["--dispatcher", address, "--port", "0", ...limits],
  });
  await worker.line(/listening on/);
  // Its inner loop has a known number of iterations: in one loop the engine would leave out its
  // checks.
  const filling = Dataset.range(1).map(() => {
    const held: number[][] = [];
    for (;;) held.push(new Array(1000).fill(1));
  });
  const [ended] = await read(address, filling) as [LeatError];
  assertStringIncludes(ended.message, "--function-heap-mib");
  assertEquals(await read(address, Dataset.range(2)), [0, 1]);
});

Deno.test("a worker does not start with grants that it cannot give, or that give too much", async () => {
  const key = "tests/transport/tls/server.key";
  const cert = "tests/transport/tls/server.pem";
  await using temporary = await TempFolder.make({
    "data/token": "sesame\n",
    "secrets/token": "sesame\n",
    "secrets/tokens": "team-a client sesame-a\n",
    "linked/numbers.txt": "1",
    "near/journal/dispatcher.sqlite": "",
  });
  const { path } = temporary;
  await link(`${path}/secrets`, `${path}/linked/more`);
  await link(`${path}/data/token`, `${path}/by-link`);
  const [data, linked, token] = [`${path}/data`, `${path}/linked`, `${path}/data/token`];
  const service = `ws://127.0.0.1:9=${path}/secrets/token`;
  const cases: [args: string[], said: RegExp][] = [
    [["--data-root", "/no/such/folder"], /\/no\/such\/folder cannot be granted/],
    [["--data-root", "deno.json"], /deno.json cannot be granted, since it is no folder/],
    [["--no-sandbox", "--allow-net", "a.example"], /--no-sandbox grants everything/],
    [["--cert", cert, "--key", key], /--key .*server.key is in the data root .* keep it elsewhere/],
    [["--data-root", data, "--token-file", token], /--token-file .* is in the data root/],
    [
      ["--data-root", data, "--token-file", `${path}/by-link`],
      /--token-file .* is in the data root/,
    ],
    [
      ["--data-root", path, "--service-token-file", service],
      /--service-token-file .* is in the data/,
    ],
    [
      ["--data-root", linked, "--tokens-file", `${path}/secrets/tokens`],
      /--tokens-file .* is reached by the link .*\/linked\/more in the data root/,
    ],
    [
      ["--data-root", linked, "--allow-write", data, "--token-file", token],
      /--token-file .* is in the write root .*\/data,/,
    ],
    [["--data-root", `${path}/near`], /The journal of a dispatcher, .*\/near\/journal\/disp/],
  ];
  await Promise.all(cases.map(async ([args, said]) => {
    await using worker = startChild("cli/worker.ts", {
      args: ["--dispatcher", "ws://127.0.0.1:9", ...args],
    });
    assertEquals((await worker.status).success, false);
    assertMatch(worker.stderr.text, said);
  }));
});

Deno.test("a program without unstable features uses the library, and a sandbox", async () => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  const { permissions: _, ...config } = JSON.parse(await Deno.readTextFile("deno.json"));
  assertEquals(config.unstable, undefined);
  await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify(config));
  await Deno.copyFile("deno.lock", `${folder}/deno.lock`);
  const flags = ["--config", `${folder}/deno.json`, "--no-check", "--allow-all"];
  const program = "tests/cluster/fixture_stable_program.ts";
  for (const args of [[], ["sandbox"]]) {
    await using child = startChild(program, { flags, args });
    assertEquals((await child.status).success, true, child.stderr.text);
    assertEquals(child.stdout.text, `${args.length === 0 ? "local 90\n" : ""}served 90\n`);
  }
});
