/**
 * The holder of a token proves it and waits with the rest. Once the token is withdrawn, or has
 * another role, that connection must not become a link.
 */
import type { AccessRole } from "../../actors/runtime/identity.ts";
import { nodeActorOf } from "../../actors/runtime/node/node_actor.ts";
import { serveDispatcher } from "../../mod.ts";
import { askForState } from "../../cli/cluster/state_request.ts";
import { ServiceNode } from "../../platform/nodes/service_node.ts";
import { type NamedToken, TokenSet } from "../../transport/web_socket.ts";
import { rejection } from "../actors/runtime/nodes.ts";
import { assertEquals, assertStringIncludes } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { until } from "../lib/until.ts";
import { TcpProxy } from "../transport/tcp_proxy.ts";
import { Listener } from "../transport/web_socket/strangers.ts";
import { RawNode } from "./raw_node.ts";

const tokenOf = (name: string) => `token-of-${name}-0123`;

/** What a connection is told first: the code and message of a goodbye, or "hello" of a link. */
async function firstWord(raw: RawNode): Promise<unknown> {
  const { kind, error } = await until(() => raw.messages[0]);
  if (kind !== "bye") return kind;
  const { code, message } = error as { code: string; message: string };
  return `${code}: ${message}`;
}

Deno.test("a proof from before its token was withdrawn, or got another role, opens no link", async () => {
  await using folder = await TempFolder.make();
  const file = `${folder.path}/tokens`;
  const write = (...lines: [name: string, role: AccessRole][]) =>
    Deno.writeTextFile(
      file,
      lines.map(([name, role]) => `${name} ${role} ${tokenOf(name)}\n`).join(""),
    );
  await write(["gone", "client"], ["turned", "worker"], ["stays", "client"]);
  await using dispatcher = await serveDispatcher({ logLevel: "off", tokens: { file } });
  const service = dispatcher.address;
  await using gone = await RawNode.prove(service, tokenOf("gone"));
  await using turned = await RawNode.prove(service, tokenOf("turned"));
  await using stays = await RawNode.prove(service, tokenOf("stays"));
  await write(["turned", "client"], ["stays", "client"], ["eyes", "viewer"]);
  const sees = () => askForState(service, { token: tokenOf("eyes") }).then(() => true);
  await until(() => sees().catch(() => false), 50);
  const whys = [
    [gone, 'The token of "gone" was withdrawn'],
    [turned, 'The token of "turned" has the role client now, and had the role worker'],
  ] as const;
  for (const [raw, why] of whys) {
    raw.hello();
    assertEquals(await firstWord(raw), `unauthenticated: ${why}`);
    await until(() => raw.isClosed);
  }
  stays.hello();
  stays.send(stays.asking("hello", null));
  await until(() => stays.answered("reply").length === 1);
});

Deno.test("a server that is told of no change checks the token at the hello, too", async () => {
  const named = (name: string): NamedToken => ({
    token: tokenOf(name),
    identity: { name, role: "client" },
  });
  let tokens = new TokenSet([named("gone"), named("stays")]);
  await using listener = new Listener({
    isService: true,
    tokens: { find: (id) => tokens.find(id) },
  });
  const { address } = listener.server;
  await using gone = await RawNode.prove(address, tokenOf("gone"));
  await using stays = await RawNode.prove(address, tokenOf("stays"));
  tokens = new TokenSet([named("stays")]);
  gone.hello();
  assertEquals(await firstWord(gone), 'unauthenticated: The token of "gone" was withdrawn');
  stays.hello();
  await until(() => listener.links.length === 1);
  assertEquals(listener.links.map(({ identity }) => identity.name), ["stays"]);
});

for (
  const [name, line, why] of [
    [
      "a withdrawn token keeps no link that the dispatcher dialled with it",
      "",
      "its token was withdrawn",
    ],
    [
      "a worker's token that becomes a client's keeps no link that the dispatcher dialled with it",
      `one client ${tokenOf("one")}\n`,
      "its token has the role client now",
    ],
  ] as const
) {
  Deno.test(name, async () => {
    const boss = `boss admin ${tokenOf("boss")}\n`;
    await using folder = await TempFolder.make({ tokens: `${boss}one worker ${tokenOf("one")}\n` });
    const file = `${folder.path}/tokens`;
    const quiet = { logLevel: "off" } as const;
    const dispatcher = new ServiceNode({ ...quiet, tokens: { file } }, { dialling: "workers" });
    await using proxy = new TcpProxy(dispatcher.port);
    const service = `ws://127.0.0.1:${proxy.port}`;
    const worker = new ServiceNode({ ...quiet, token: tokenOf("one") }, { dialling: { service } });
    const list = (from: ServiceNode, node: string) =>
      from.system.ask(nodeActorOf(node), "list", null, { timeoutMs: 60_000 });
    // The link that the worker dials breaks. The next one is the dispatcher's.
    await list(worker, service).catch(() => {});
    await until(() => dispatcher.system.linkedNodes.length === 1);
    proxy.cut();
    await until(() => dispatcher.system.linkedNodes.length === 0);
    await list(dispatcher, worker.address);
    assertEquals(dispatcher.system.linkedNodes, [worker.address]);
    await Deno.writeTextFile(file, boss + line);
    await until(() => dispatcher.system.linkedNodes.length === 0);
    const refusal = await rejection(list(dispatcher, worker.address), "unavailable");
    assertStringIncludes(refusal.message, why);
    await worker.stop();
    await dispatcher.stop();
  });
}
