/** Secrets that functions could read are refused at the start. */
import { LeatError, LocalCluster, serveWorker } from "../../mod.ts";
import { requireSecretsOutside } from "../../server/secrets_outside.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { link } from "../platform/sandbox/sandbox_lib.ts";

const FILES = { "data/a/b/c.txt": "1", "database/token": "sesame", "secrets/token": "sesame" };

async function refusalOf(check: () => Promise<unknown>): Promise<string> {
  const { code, message } = await assertRejects(check, LeatError);
  assertEquals(code, "invalid_argument");
  assertStringIncludes(message, "keep it elsewhere");
  return message;
}

Deno.test("requireSecretsOutside allows a secret next to a data root, even with a common name prefix", async () => {
  await using folder = await TempFolder.make(FILES);
  const secret = { what: "token", path: `${folder.path}/database/token` };
  await requireSecretsOutside({ dataRoots: [`${folder.path}/data`, "s3://bucket/data"] }, [secret]);
});

Deno.test("requireSecretsOutside refuses a secret in a root that is named by a URL", async () => {
  await using folder = await TempFolder.make(FILES);
  const secret = { what: "token", path: `${folder.path}/secrets/token` };
  for (const kind of ["dataRoots", "writeRoots"] as const) {
    const root = new URL(`file://${folder.path}/secrets`).href;
    const said = await refusalOf(() => requireSecretsOutside({ [kind]: [root] }, [secret]));
    assertStringIncludes(said, root);
  }
});

Deno.test("requireSecretsOutside names a root on another host", async () => {
  const root = "file://elsewhere/data";
  const check = () => requireSecretsOutside({ writeRoots: [root] }, []);
  const { code, message } = await assertRejects(check, LeatError);
  assertEquals(code, "invalid_argument");
  assertStringIncludes(message, root);
});

Deno.test("requireSecretsOutside refuses a link to a secret, to its folder, and to one above", async () => {
  for (const target of ["secrets/token", "secrets", "."]) {
    await using folder = await TempFolder.make(FILES);
    const { path } = folder;
    await link(`${path}/${target}`, `${path}/data/a/link`);
    const secret = { what: "token", path: `${path}/secrets/token` };
    const said = await refusalOf(() =>
      requireSecretsOutside({ dataRoots: [`${path}/data`] }, [secret])
    );
    assertStringIncludes(said, "data/a/link");
  }
});

Deno.test("requireSecretsOutside refuses a secret in a root that is named by a link", async () => {
  await using folder = await TempFolder.make(FILES);
  const { path } = folder;
  await link(`${path}/secrets`, `${path}/root`);
  const secret = { what: "token", path: `${path}/secrets/token` };
  const said = await refusalOf(() =>
    requireSecretsOutside({ dataRoots: [`${path}/root`] }, [secret])
  );
  assertStringIncludes(said, `data root ${path}/root`);
});

Deno.test("requireSecretsOutside names a write root as such, with its options", async () => {
  await using folder = await TempFolder.make(FILES);
  const { path } = folder;
  const secret = { what: "token", path: `${path}/secrets/token` };
  const roots = { dataRoots: [`${path}/data`], writeRoots: [`${path}/secrets`] };
  const said = await refusalOf(() => requireSecretsOutside(roots, [secret]));
  assertStringIncludes(said, `is in the write root ${path}/secrets`);
  assertStringIncludes(said, "(--allow-write, writeRoots)");
});

Deno.test("a LocalCluster that confines functions keeps no journal where they read", async () => {
  await using folder = await TempFolder.make(FILES);
  const journal = `${folder.path}/data/journal`;
  const confine = { dataRoots: [folder.path] };
  const said = await refusalOf(() => LocalCluster.start({ journal, confine, workers: 0 }));
  assertStringIncludes(said, journal);
});

Deno.test("a LocalCluster confines functions to no folder with another dispatcher's journal", async () => {
  await using folder = await TempFolder.make({ "journal/dispatcher.sqlite": "" });
  const confine = { dataRoots: [folder.path] };
  const said = await refusalOf(() => LocalCluster.start({ confine, workers: 0 }));
  assertStringIncludes(said, "The journal of a dispatcher");
});

Deno.test("addWorker confines functions to no folder with the journal of its cluster", async () => {
  await using folder = await TempFolder.make(FILES);
  const journal = `${folder.path}/data/journal`;
  await using cluster = await LocalCluster.start({ journal, carrier: "inline", workers: 0 });
  const confine = { dataRoots: [folder.path] };
  const said = await refusalOf(() => cluster.addWorker({ confine }));
  assertStringIncludes(said, `journal ${journal}`);
  assertEquals(cluster.workers, 0);
});

Deno.test("serveWorker refuses a file of tokens in a data root", async () => {
  await using folder = await TempFolder.make({ tokens: "team-a client sesame-a\n" });
  const tokens = { file: `${folder.path}/tokens` };
  const sandbox = { dataRoots: [folder.path] };
  const said = await refusalOf(() =>
    serveWorker({ dispatcher: "ws://127.0.0.1:9", tokens, sandbox, logLevel: "off" })
  );
  assertStringIncludes(said, tokens.file);
});

Deno.test("serveWorker refuses a data root with a dispatcher's journal, also without a file of tokens", async () => {
  await using folder = await TempFolder.make({ "journal/dispatcher.sqlite": "" });
  const sandbox = { dataRoots: [folder.path] };
  const said = await refusalOf(() =>
    serveWorker({ dispatcher: "ws://127.0.0.1:9", sandbox, logLevel: "off" })
  );
  assertStringIncludes(said, "The journal of a dispatcher");
});

Deno.test("requireSecretsOutside refuses hard links to a secret, and no other files", async () => {
  for (const name of ["data/hard", "data/a/hard"]) {
    await using folder = await TempFolder.make({ ...FILES, "data/a/other": "sesame" });
    const { path } = folder;
    const secret = { what: "token", path: `${path}/secrets/token` };
    const check = () => requireSecretsOutside({ dataRoots: [`${path}/data`] }, [secret]);
    await check();
    await Deno.link(secret.path, `${path}/${name}`);
    assertStringIncludes(await refusalOf(check), name);
  }
});

Deno.test("requireSecretsOutside refuses a link to another name of a secret's file", async () => {
  await using folder = await TempFolder.make(FILES);
  const { path } = folder;
  const secret = { what: "token", path: `${path}/secrets/token` };
  await Deno.link(secret.path, `${path}/database/hard`);
  await link(`${path}/database/hard`, `${path}/data/link`);
  const check = () => requireSecretsOutside({ dataRoots: [`${path}/data`] }, [secret]);
  assertStringIncludes(await refusalOf(check), "data/link");
});

Deno.test("requireSecretsOutside refuses another name of a file in a secret's folder", async () => {
  await using folder = await TempFolder.make(FILES);
  const { path } = folder;
  await Deno.link(`${path}/secrets/token`, `${path}/data/hard`);
  const secret = { what: "journal", path: `${path}/secrets` };
  const check = () => requireSecretsOutside({ dataRoots: [`${path}/data`] }, [secret]);
  assertStringIncludes(await refusalOf(check), "data/hard");
});

Deno.test("requireSecretsOutside without a secret identifies no file of a root", async () => {
  await using folder = await TempFolder.make(FILES);
  const { stat } = Deno;
  const identified: string[] = [];
  Deno.stat = (path) => {
    identified.push(String(path));
    return stat(path);
  };
  try {
    await requireSecretsOutside({ dataRoots: [`${folder.path}/secrets`] }, []);
  } finally {
    Deno.stat = stat;
  }
  assertEquals(identified.filter((path) => path.endsWith("token")), []);
});
