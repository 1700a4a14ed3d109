/** The owners of incarnations. */
import type { AccessRole, Identity } from "../../../actors/runtime/identity.ts";
import { LeatError } from "../../../core/error.ts";
import { IncarnationOwners } from "../../../transport/web_socket/tokens/incarnation_owners.ts";
import { assertEquals, assertThrows } from "../../assert.ts";

const as = (name: string, role: AccessRole): Identity => ({ name, role });
const WORKER = as("one", "worker");

Deno.test("IncarnationOwners.claim gives an incarnation to its first claimant, who may repeat the claim", () => {
  const owners = new IncarnationOwners();
  owners.claim("a", WORKER);
  owners.claim("a", WORKER);
  for (const thief of [as("team", "client"), as("two", "worker"), as("eyes", "viewer")]) {
    const error = assertThrows(() => owners.claim("a", thief), LeatError, `"${thief.name}"`);
    assertEquals(error.code, "permission_denied");
  }
  assertEquals(owners.isOf("a", WORKER), true);
});

Deno.test("IncarnationOwners.claim returns an incarnation from a client to a worker", () => {
  const owners = new IncarnationOwners();
  const team = as("team", "client");
  owners.claim("a", team);
  owners.claim("a", WORKER);
  assertEquals([owners.isOf("a", team), owners.isOf("a", WORKER)], [false, true]);
});
