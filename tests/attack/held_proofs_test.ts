/**
 * The holder of a token proves it on more connections than a listener may have open files, and says
 * no hello on any of them, or has a link on each. Others must still get a link.
 */
import { TokenSet } from "../../transport/web_socket.ts";
import { until } from "../lib/until.ts";
import { Listener } from "../transport/web_socket/strangers.ts";
import { RawNode } from "./raw_node.ts";

const FILES_MAX = 96;
const HELD = 200;

Deno.test("a viewer who proves a token and says no hello keeps out neither admin nor worker", async () => {
  const tokens = (["viewer", "admin", "worker"] as const).map((role) => ({
    token: `token-of-the-${role}`,
    identity: { name: role, role },
  }));
  const held: RawNode[] = [];
  const open = () => held.filter(({ isClosed }) => !isClosed).length;
  await using listener = new Listener({
    isService: true,
    tokens: new TokenSet(tokens),
    // It frees no handle in this test.
    helloTimeoutMs: 1_000_000,
    hasSpareFiles: (count) => open() + count <= FILES_MAX,
  });
  const { address } = listener.server;
  for (let i = 0; i < HELD; i++) {
    const raw = await RawNode.prove(address, "token-of-the-viewer").catch(() => undefined);
    if (raw !== undefined) held.push(raw);
  }
  for (const role of ["admin", "worker"]) {
    await using _raw = await until(
      () => RawNode.link(address, `token-of-the-${role}`).catch(() => undefined),
      50,
    );
    await until(() => listener.links.some(({ identity }) => identity.name === role));
  }
  for (const raw of held) await raw[Symbol.asyncDispose]();
});

Deno.test("a client with as many links as it gets keeps out neither worker nor another client", async () => {
  const tokens = ([["many", "client"], ["other", "client"], ["worker", "worker"]] as const).map(
    ([name, role]) => ({ token: `token-of-the-${name}`, identity: { name, role } }),
  );
  const filesMax = 256;
  const held: RawNode[] = [];
  const open = () => held.filter(({ isClosed }) => !isClosed).length;
  await using listener = new Listener({
    isService: true,
    tokens: new TokenSet(tokens),
    hasSpareFiles: (count) => open() + count <= filesMax,
  });
  const { address } = listener.server;
  for (let i = 0; i < filesMax; i++) {
    const raw = await RawNode.link(address, "token-of-the-many").catch(() => undefined);
    if (raw === undefined) break;
    held.push(raw);
  }
  for (const name of ["other", "worker"]) {
    await using _raw = await RawNode.link(address, `token-of-the-${name}`);
    await until(() => listener.links.some(({ identity }) => identity.name === name));
  }
  for (const raw of held) await raw[Symbol.asyncDispose]();
});
