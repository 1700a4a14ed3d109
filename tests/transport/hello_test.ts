/** The first and the last message of a connection. */
import { byeReason } from "../../transport/hello.ts";
import { assertEquals } from "../assert.ts";

Deno.test("byeReason says that a bye without an error gives no reason", () => {
  for (const error of [undefined, null, 7, "text"]) {
    const reason = byeReason({ kind: "bye", error })!;
    assertEquals(
      [reason.code, reason.message],
      ["unavailable", "The other side closed the connection and gave no reason"],
    );
  }
});
