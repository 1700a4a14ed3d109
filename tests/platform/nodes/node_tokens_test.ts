/** `NodeTokens`: which token a service node proves to which other node. */
import type { Link } from "../../../actors/runtime/link.ts";
import { LeatError } from "../../../core/error.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { NodeTokens } from "../../../platform/nodes/node_tokens.ts";
import { idOf } from "../../../transport/web_socket/tokens/proof.ts";
import { assertEquals, assertThrows } from "../../assert.ts";

const WORKER = { name: "one", role: "worker", token: "token-of-one-0123" } as const;

/** A link that only closes. */
function linkOnly(): Link {
  const closed = Promise.withResolvers<LeatError>();
  const close = (error: LeatError) => closed.resolve(error);
  return { closed: closed.promise, close } as unknown as Link;
}

Deno.test("NodeTokens.dialled closes a link whose token was withdrawn while it was dialled", async () => {
  const tokens = new NodeTokens(new DenoWorld(), { tokens: [WORKER] }, "workers");
  const kept = linkOnly();
  const { token, ...identity } = WORKER;
  tokens.dialled(kept, { target: "node", tokenId: idOf(token), identity });
  const link = linkOnly();
  tokens.dialled(link, { target: "node", tokenId: idOf("token-of-gone-0123"), identity });
  assertEquals((await link.closed).code, "unauthenticated");
  const first = await Promise.race([kept.closed, Promise.resolve("open")]);
  assertEquals(first, "open");
});

Deno.test("NodeTokens forgets no worker's token, however many clients connect under names of their own", () => {
  const client = { name: "team", role: "client", token: "token-of-team-0123" } as const;
  const tokens = new NodeTokens(new DenoWorld(), { tokens: [WORKER, client] }, "workers");
  const admit = (node: string, { name, role, token }: typeof WORKER | typeof client) =>
    tokens.admitted(node, {
      ...{ identity: { name, role }, tokenId: idOf(token), isProved: true, headers: {} },
    });
  const address = "ws://10.0.0.7:5051";
  admit(address, WORKER);
  for (let i = 0; i <= 10_000; i++) admit(`client-${i}`, client);
  assertEquals(tokens.credentialFor(address, "ws://10.0.0.5:5050")?.token, WORKER.token);
});

Deno.test("NodeTokens dials no live worker of another name, which its token has got since", () => {
  let owner: string | undefined = "one";
  const renamed = { ...WORKER, name: "one-b" };
  const tokens = new NodeTokens(
    new DenoWorld(),
    { tokens: [renamed] },
    "workers",
    () => owner,
  );
  const { token, ...identity } = renamed;
  const address = "ws://10.0.0.7:5051";
  tokens.admitted(address, { identity, tokenId: idOf(token), isProved: true, headers: {} });
  const dial = () => tokens.credentialFor(address, "ws://10.0.0.5:5050");
  assertThrows(dial, LeatError, 'is of "one", and its token is of "one-b" now');
  owner = undefined; // once that worker counts as lost
  assertEquals(dial()?.identity, identity);
});
