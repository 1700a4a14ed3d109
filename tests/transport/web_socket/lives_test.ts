/** The owners of incarnations. */
import type { AccessRole, Identity } from "../../../actors/runtime/identity.ts";
import { LeatError } from "../../../core/error.ts";
import { Lives } from "../../../transport/web_socket/tokens/lives.ts";
import { assertEquals, assertThrows } from "../../assert.ts";

const as = (name: string, role: AccessRole): Identity => ({ name, role });
const WORKER = as("one", "worker");

Deno.test("Lives.claim gives an incarnation to its first claimant, who may repeat the claim", () => {
  const lives = new Lives();
  lives.claim("a", WORKER);
  lives.claim("a", WORKER);
  for (const thief of [as("team", "client"), as("two", "worker"), as("eyes", "viewer")]) {
    const error = assertThrows(() => lives.claim("a", thief), LeatError, `"${thief.name}"`);
    assertEquals(error.code, "permission_denied");
  }
  assertEquals(lives.isOf("a", WORKER), true);
});

Deno.test("Lives.claim returns an incarnation from a client to a worker", () => {
  const lives = new Lives();
  const team = as("team", "client");
  lives.claim("a", team);
  lives.claim("a", WORKER);
  assertEquals([lives.isOf("a", team), lives.isOf("a", WORKER)], [false, true]);
});
