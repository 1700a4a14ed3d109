/** The nodes from which clients of this process reach services. */
import { Homes } from "../../../platform/nodes/client_homes.ts";
import { assertEquals, assertNotEquals } from "../../assert.ts";

Deno.test("Homes opens nodes of different names in one world, so that a warning comes once for all", () => {
  const homes = new Homes();
  const opened = (service: string) => {
    const { system, release } = homes.open(service, {});
    release();
    return system;
  };
  const [first, ...others] = ["ws://127.0.0.1:1", "ws://127.0.0.1:1", "ws://127.0.0.1:2"].map(
    opened,
  );
  for (const other of others) {
    assertEquals(other.world === first!.world, true);
    assertNotEquals(other.id.node, first!.id.node);
  }
});
