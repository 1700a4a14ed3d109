/**
 * What is fetched for modules of confined threads, and which hosts are asked for it.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { FetchedModules } from "../../world/sandbox/fetched_modules.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { ModuleHost } from "./module_host.ts";

Deno.test("FetchedModules tells where redirects lead, and keeps what has come", async () => {
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

Deno.test("FetchedModules asks no host that was not granted, whoever redirects to it", async () => {
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

Deno.test("FetchedModules takes a host with its port, for all of its ports, and by what it is below", async () => {
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
