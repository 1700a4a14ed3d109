/** Errors about addresses and credentials: misplaced secrets are not shown. */
import { readCredentials, readServiceTokens } from "../../cli/cluster/server_options.ts";
import { UsageError } from "../../cli/lib/args.ts";
import { LeatError, LocalCluster, serveDispatcher, serveWorker } from "../../mod.ts";
import { secretiveServices, serviceAddress } from "../../platform/nodes/service_address.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";

const DIGITS = 4711;
const SECRET = `open-${DIGITS}`;
const dispatcher = "ws://127.0.0.1:1";

/** The error contains all of `parts`, and not the secret. */
function assertSaysOnly({ code, message }: LeatError, ...parts: readonly string[]): void {
  assertEquals(code, "invalid_argument", message);
  assert(!message.includes(`${DIGITS}`), message);
  for (const part of parts) assert(message.includes(part), `"${part}" in "${message}"`);
}

Deno.test("serveWorker and LocalCluster errors show no misplaced secret of services", async () => {
  const wrong: [services: unknown, ...parts: string[]][] = [
    [SECRET, "services", "an object"],
    [null, "services", "an object", "got null"],
    [[SECRET], "address 1 of 1"],
    [{ "ws://a:1": { token: "t" }, [SECRET]: { token: "t" } }, "address 2 of 2", "ws://host:port"],
    [{ [`ws://user:${SECRET}@a:1`]: {} }, "address 1 of 1"],
    [{ [`ws://a:1/?token=${SECRET}`]: {} }, "address 1 of 1"],
    [{ "ws://a:1": SECRET }, 'services["ws://a:1"]', "{ token, ca }"],
    [{ "ws://a:1": { token: null } }, 'services["ws://a:1"]', "token", "got null"],
    [{ "ws://a:1": { token: DIGITS } }, 'services["ws://a:1"]', "token", "number"],
    [{ "ws://a:1": { token: [SECRET] } }, 'services["ws://a:1"]', "token", "array"],
  ];
  for (const [given, ...parts] of wrong) {
    const services = given as Record<string, { token: string }>;
    for (
      const start of [
        () => serveWorker({ dispatcher, services }),
        () => LocalCluster.start({ carrier: "inline", services }),
      ]
    ) assertSaysOnly(await assertRejects(start, LeatError), ...parts);
  }
});

Deno.test("servers do not show a token or key of the wrong type", async () => {
  for (const name of ["token", "key"] as const) {
    const config = { [name]: DIGITS as unknown as string };
    for (
      const serve of [
        () => serveDispatcher(config),
        () => serveWorker({ dispatcher, ...config }),
      ]
    ) assertSaysOnly(await assertRejects(serve, LeatError), name, "number");
  }
});

Deno.test("servers refuse a ca without a certificate, and do not show it", async () => {
  const ca = SECRET;
  for (
    const serve of [
      () => serveDispatcher({ ca }),
      () => serveWorker({ dispatcher, ca }),
      () => serveWorker({ dispatcher, services: { "ws://a:1": { ca } } }),
    ]
  ) assertSaysOnly(await assertRejects(serve, LeatError), "ca must be certificates in PEM");
});

Deno.test("readCredentials refuses a --ca file without a certificate, and names it", async () => {
  const certificate = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
  await using folder = await TempFolder.make({ key: SECRET, ca: certificate });
  const read = (name: string) =>
    readCredentials({ token: undefined, tokenFile: undefined, ca: `${folder.path}/${name}` });
  const error = await assertRejects(() => read("key"), UsageError);
  assertSaysOnly(error, `--ca ${folder.path}/key has no certificate in PEM`);
  assertEquals(await read("ca"), { ca: certificate });
});

Deno.test("secretiveServices refuses two spellings of one service, and names both", () => {
  for (
    const [one, other] of [
      ["ws://a:1", "ws://a:1/"],
      ["ws://a", "ws://a:80"],
      ["wss://a:443/", "wss://a"],
      ["ws://trainer:1", "WS://Trainer:1"],
      ["ws://127.0.0.1:1", "ws://127.1:1"],
    ] as const
  ) {
    const error = assertThrows(() => secretiveServices(["ws://b:1", one, other], "s"), LeatError);
    assertSaysOnly(error, `"${one}"`, `"${other}"`, "leave one of them out");
  }
  const apart = ["ws://a:1", "ws://a:2", "wss://a:1", "ws://b:1"];
  assertEquals(secretiveServices(apart, "s"), apart);
});

Deno.test("serveWorker refuses two spellings of one service without its secrets", async () => {
  const services = { "ws://a:1": { token: SECRET }, "ws://A:1/": { token: "t" } };
  const error = await assertRejects(() => serveWorker({ dispatcher, services }), LeatError);
  assertSaysOnly(error, "serveWorker: services", '"ws://a:1" and "ws://A:1/"');
});

Deno.test("--service-token-file accepts each service once, and shows no secret in the place of an address", async () => {
  await using folder = await TempFolder.make({ a: "of-a\n", b: "of-b" });
  const [a, b] = [`${folder.path}/a`, `${folder.path}/b`];
  assertEquals(await readServiceTokens([`ws://h:1/=${a}`, `ws://h:2=${b}`]), {
    "ws://h:1": { token: "of-a" },
    "ws://h:2": { token: "of-b" },
  });
  const refused: [values: string[], ...parts: string[]][] = [
    [[`ws://h:1=${a}`, SECRET], "--service-token-file", "ADDRESS=FILE", "number 2 of 2"],
    [[`${SECRET}=${a}`], "--service-token-file", "address 1 of 1", "ws://host:port"],
    [[`ws://h:1=${a}`, `ws://H:1/=${b}`], "--service-token-file", '"ws://h:1" and "ws://H:1/"'],
  ];
  for (const [values, ...parts] of refused) {
    assertSaysOnly(await assertRejects(() => readServiceTokens(values), LeatError), ...parts);
  }
});

Deno.test("serviceAddress shows the refused text without the secrets of a URL", () => {
  for (
    const [text, shown] of [
      ["http://h:1", "http://h:1"],
      [`ws://h:1/?token=${SECRET}`, "ws://h:1/?…"],
      [`ws://user:${SECRET}@h:1`, "ws://…@h:1"],
      [`ws://:${SECRET}@h:1/`, "ws://…@h:1/"],
      [`user:${SECRET}@h:1`, "…@h:1"],
      [`ws://h:1#${SECRET}`, "ws://h:1?…"],
    ] as const
  ) {
    const error = assertThrows(() => serviceAddress(text, "service"), LeatError);
    assertSaysOnly(error, "service must be", `"${shown}"`);
  }
});
