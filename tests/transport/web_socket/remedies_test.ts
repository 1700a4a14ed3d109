/** Remedies for servers whose TLS fails. */
import { tlsRemedy } from "../../../transport/web_socket/remedies.ts";
import { assertMatch, assertRejects } from "../../assert.ts";

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

Deno.test("tlsRemedy blames this program, and not the server, for damaged authorities", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  using conn = await Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port });
  const ca = "-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n";
  const { message } = await assertRejects(
    () => Deno.startTls(conn as Deno.TcpConn, { caCerts: [ca] }),
    Error,
  );
  assertMatch(tlsRemedy("wss://a:1", message)!, /authorities .* this program .*--ca\b/);
});
