/** The owners of incarnations. */
import type { AccessRole, Identity } from "../../../actors/runtime/identity.ts";
import { LeatError } from "../../../core/error.ts";
import {
  IncarnationOwners,
  UNLINKED_MAX,
} from "../../../transport/web_socket/tokens/incarnation_owners.ts";
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

Deno.test("IncarnationOwners keeps the owners of open links, and forgets none because of another identity's claims", () => {
  const owners = new IncarnationOwners();
  const team = as("team", "client");
  owners.claim("linked", team);
  owners.linked("linked");
  owners.claim("closed", WORKER);
  owners.linked("closed");
  owners.unlinked("closed", WORKER);
  for (let i = 0; i < 5 * UNLINKED_MAX; i++) {
    owners.claim(`${i}`, team);
    owners.linked(`${i}`);
    owners.unlinked(`${i}`, team);
  }
  assertEquals([owners.isOf("linked", team), owners.isOf("closed", WORKER)], [true, true]);
  const first = 5 * UNLINKED_MAX - UNLINKED_MAX;
  assertEquals([owners.isOf(`${first}`, team), owners.isOf(`${first - 1}`, team)], [true, false]);
});

Deno.test("IncarnationOwners does not count the close of a link whose incarnation a worker took", () => {
  const owners = new IncarnationOwners();
  const team = as("team", "client");
  owners.claim("a", team);
  owners.linked("a");
  owners.claim("a", WORKER);
  owners.linked("a");
  owners.unlinked("a", team);
  for (let i = 0; i <= UNLINKED_MAX; i++) owners.claim(`${i}`, WORKER);
  assertEquals(owners.isOf("a", WORKER), true);
});
