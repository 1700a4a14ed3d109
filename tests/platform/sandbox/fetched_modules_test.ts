/** Fetching modules for confined processes, and which hosts are contacted. */
import { LeatError } from "../../../core/error.ts";
import { FetchedModules } from "../../../platform/sandbox/modules/fetched_modules.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { until } from "../../lib/until.ts";
import { ModuleHost } from "./module_host.ts";

Deno.test("FetchedModules reports the targets of redirects, and keeps fetched modules", async () => {
  await using host = new ModuleHost({ "/f": "to /v1/f", "/v1/f": "to ./g.js", "/v1/g.js": "text" });
  const fetched = new FetchedModules([host.name]);
  const found = {
    url: `http://${host.name}/v1/g.js`,
    mediaType: "text/javascript",
    text: "text",
  };
  const asking = [1, 2, 3].map(() => fetched.get(`http://${host.name}/f`));
  assertEquals(await Promise.all(asking), [found, found, found]);
  assertEquals(await fetched.get(`http://${host.name}/f`), found);
  assertEquals(host.asked, ["/f", "/v1/f", "/v1/g.js"]);
  fetched.close();
});

Deno.test("FetchedModules contacts no host that was not granted, whatever redirects to it", async () => {
  await using other = new ModuleHost({ "/f.js": "text" });
  await using host = new ModuleHost({
    "/away": `to http://${other.name}/f.js`,
    "/round": "to /round",
    "/file": "to file:///etc/hostname",
  });
  const fetched = new FetchedModules([host.name]);
  const cases = {
    away: ["permission_denied", `import access to "${other.name}"`],
    file: ["permission_denied", 'import access to "file:///etc/hostname"'],
    round: ["unavailable", "redirects"],
    none: ["not_found", "answers 404"],
  };
  for (const [name, [code, message]] of Object.entries(cases)) {
    const get = () => fetched.get(`http://${host.name}/${name}`);
    const error = await assertRejects(get, LeatError);
    assertEquals(error.code, code);
    assertStringIncludes(error.message, message!);
  }
  assertEquals(other.asked, []);
  fetched.close();
});

Deno.test("FetchedModules fetches a module once, whatever the fragment of its URL", async () => {
  await using host = new ModuleHost({ "/f": "to /g#redirected", "/g": "text" });
  const fetched = new FetchedModules([host.name]);
  const found = { url: `http://${host.name}/g`, mediaType: "text/javascript", text: "text" };
  for (const fragment of ["#a", "#b", ""]) {
    assertEquals(await fetched.get(`http://${host.name}/f${fragment}`), found);
  }
  assertEquals(host.asked, ["/f", "/g"]);
  fetched.close();
});

Deno.test("FetchedModules keeps modules up to its limits, and drops the oldest", async () => {
  await using host = new ModuleHost({ "/f": "x".repeat(20), "/to": "to /f" });
  const url = (query: string) => `http://${host.name}/f?${query}`;
  const askedFor = async (fetched: FetchedModules, ...queries: string[]) => {
    const before = host.asked.length;
    for (const query of queries) await fetched.get(url(query));
    return host.asked.length - before;
  };
  const few = new FetchedModules([host.name], { modulesMax: 2 });
  assertEquals(await askedFor(few, "a", "b", "a", "b"), 2);
  assertEquals(await askedFor(few, "c", "b", "c"), 1);
  assertEquals(await askedFor(few, "a"), 1);
  few.close();
  // Its requested and its final URL; its media type; its text.
  const chars = 2 * url("a").length + "text/javascript".length + 20;
  const small = new FetchedModules([host.name], { charsMax: 2 * chars });
  assertEquals(await askedFor(small, "a", "b", "a", "b"), 2);
  assertEquals(await askedFor(small, "c", "b", "c"), 1);
  // With one more character in a URL, only one module fits.
  assertEquals(await askedFor(small, "bb", "c", "bb"), 3);
  small.close();
});

Deno.test("FetchedModules bounds the bytes in transit, and releases those of arrived modules", async () => {
  const slow = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>();
  const text = new TextEncoder().encode("x".repeat(20));
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, ({ url }) => {
    return new Response(url.includes("slow") ? slow.readable : text);
  });
  const host = `127.0.0.1:${server.addr.port}`;
  const fetched = new FetchedModules([host], { comingBytesMax: 30, modulesMax: 1 });
  let query = 0;
  const quick = () => fetched.get(`http://${host}/f?${query++}`);
  await quick();
  const coming = fetched.get(`http://${host}/slow`);
  const writer = slow.writable.getWriter();
  await writer.write(text);
  const refused = await until(() => quick().then(() => undefined, LeatError.from));
  assertEquals(refused.code, "resource_exhausted");
  assertStringIncludes(refused.message, `http://${host}/f?…: at this time`);
  await writer.close();
  assertEquals((await coming).text.length, 20);
  assertEquals((await quick()).text.length, 20);
  fetched.close();
  await server.shutdown();
});

Deno.test("FetchedModules names the module whose body breaks off", async () => {
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode("export")),
    pull: () => Promise.reject(new Error("the host has no more")),
  });
  const onError = () => new Response(null, { status: 500 });
  const listen = { hostname: "127.0.0.1", port: 0, onListen: () => {}, onError };
  const server = Deno.serve(listen, () => new Response(body));
  const host = `127.0.0.1:${server.addr.port}`;
  const fetched = new FetchedModules([host]);
  const get = () => fetched.get(`http://${host}/f.js?token=SECRET`);
  const { code, message } = await assertRejects(get, LeatError);
  assertEquals(code, "unavailable");
  assertStringIncludes(message, `Cannot import http://${host}/f.js?…: `);
  fetched.close();
  await server.shutdown();
});

Deno.test("FetchedModules refuses a URL that is too long, also from a redirect", async () => {
  const path = (length: number) => `/${"f".repeat(length)}`;
  const texts: Record<string, string> = { "/away": `to ${path(8_192)}` };
  await using host = new ModuleHost(texts);
  const fetched = new FetchedModules([host.name]);
  const origin = `http://${host.name}`;
  texts[path(8_191 - origin.length)] = "text";
  assertEquals((await fetched.get(origin + path(8_191 - origin.length))).text, "text");
  const before = host.asked.length;
  const long = [path(8_192 - origin.length), `/#${"f".repeat(8_192)}`, `/${"é".repeat(2_000)}`];
  for (const asked of [...long, "/away"]) {
    const error = await assertRejects(() => fetched.get(origin + asked), LeatError);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, "more than 8192 characters");
    assert(error.message.length < 1_000);
  }
  assertEquals(host.asked.slice(before), ["/away"]);
  fetched.close();
});

Deno.test("FetchedModules matches a host with its port, for all ports, and by its parent domain", async () => {
  await using host = new ModuleHost({ "/f": "text" });
  const url = `http://${host.name}/f`;
  for (const granted of [host.name, "127.0.0.1", "*.0.0.1"]) {
    const fetched = new FetchedModules([granted]);
    assertEquals((await fetched.get(url)).text, "text", granted);
    fetched.close();
  }
  const given = host.asked.length;
  for (const granted of ["127.0.0.1:1", "0.0.1", "*.example.com", ""]) {
    const fetched = new FetchedModules([granted]);
    const posing = [`http:${host.name}/f?.example.com`, `http://h.example.com@${host.name}/f`];
    for (const asked of [url, ...posing]) {
      const error = await assertRejects(() => fetched.get(asked), LeatError);
      assertEquals(error.code, "permission_denied", `${granted} ${asked}`);
    }
    fetched.close();
  }
  assertEquals(host.asked.length, given);
});
