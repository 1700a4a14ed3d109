/** Which hosts are the machine itself. */
import { isLoopbackHost } from "../../transport/loopback.ts";
import { assertEquals } from "../assert.ts";

Deno.test("isLoopbackHost knows all names of this machine's loopback", () => {
  for (const host of ["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"]) {
    assertEquals(isLoopbackHost(host), true, host);
  }
  for (const host of ["10.0.0.5", "0.0.0.0", "127.0.0.1.example", "::"]) {
    assertEquals(isLoopbackHost(host), false, host);
  }
});
