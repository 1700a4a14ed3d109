/** Remedies for servers whose TLS fails. */
import { tlsRemedy } from "../../../transport/web_socket/remedies.ts";
import { assertMatch } from "../../assert.ts";

Deno.test("tlsRemedy tells a wrong name, an expired certificate and an unknown authority apart", () => {
  const invalid = (why: string) => tlsRemedy("wss://a:1", `invalid peer certificate: ${why}`)!;
  const otherName = 'certificate not valid for name "a"; certificate is only valid for ' +
    'DnsName("b")';
  assertMatch(invalid(otherName), /subjectAltName.*--advertise/);
  assertMatch(invalid("certificate expired: verification time 2 (UNIX)"), /^renew/);
  assertMatch(invalid("UnknownIssuer"), /--ca\b/);
  assertMatch(invalid("BadSignature"), /--ca\b/);
  assertMatch(invalid("Other(OtherError(CaUsedAsEndEntity))"), /another certificate \(--cert\)/);
});
