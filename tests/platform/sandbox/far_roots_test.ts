/** The paths below a granted root. */
import { FarRoots } from "../../../platform/sandbox/host/far_roots.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("FarRoots contains the paths below its roots, in the form that is sent to servers", () => {
  const roots = new FarRoots(["http://Host.example:80/my data", "s3://bucket/Prefix/"]);
  const inside = [
    ...["http://host.example/my data/a", "HTTP://host.example:80/my%20data/b/c?d=e#f"],
    ...[
      "http://host.example/my data/a?to=%2Fb\\..&in=/../c",
      "http://host.example/my data/a#%2e%2e/",
    ],
    ...["s3://bucket/Prefix/my data/*.txt", "s3://bucket/Prefix/{a,b}"],
  ];
  for (const path of inside) assertEquals(roots.has(path), true, path);
  const outside = [
    ...["http://host.example/my data", "http://host.example/my database/a", "/my data/a"],
    ...["https://host.example/my data/a", "http://host.example:8080/my data/a"],
    ...["http://host.example:80@other.example/my data/a", "http://other.example/my data/a"],
    ...["http://host.example/my data/../a", "http://host.example/my data/%2E%2e/a"],
    ...["http://host.example/my data/..%2fa", "http://host.example/my data/..\\a"],
    ...["http://host.example/my data?/a", "http://host.example/my data/..%2fa?b"],
    ...["http://host.example/my data/a?b\n", "s3://bucket/Prefix/?/../../a"],
    ...["http://host.example/my data/.\t./a", "file:///my data/a", "http://[x"],
    ...["s3://bucket/Prefix/{a,../b}", "s3://bucket/prefix/a", "s3://other/Prefix/a"],
  ];
  for (const path of outside) assertEquals(roots.has(path), false, path);
});
