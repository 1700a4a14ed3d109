/** The sources of a store's settings. */

import { assertEquals, assertThrows } from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import {
  checkS3Options,
  readEnv,
  type S3Options,
  s3Settings,
} from "../../../platform/storage/s3_settings.ts";

const ENV: Record<string, string> = {
  AWS_ACCESS_KEY_ID: "env-id",
  AWS_SECRET_ACCESS_KEY: "env-secret",
  AWS_SESSION_TOKEN: "env-token",
  AWS_REGION: "eu-west-1",
  AWS_DEFAULT_REGION: "eu-west-2",
  AWS_ENDPOINT_URL: "http://127.0.0.1:1000",
  AWS_ENDPOINT_URL_S3: "http://127.0.0.1:2000",
};

function settings(options: S3Options, env: Record<string, string> = {}) {
  const { endpoint, ...others } = s3Settings(options, (name) => env[name]);
  return { endpoint: endpoint?.href, ...others };
}

Deno.test("s3Settings takes omitted options from the environment", () => {
  assertEquals(settings({}, ENV), {
    endpoint: "http://127.0.0.1:2000/",
    region: "eu-west-1",
    credentials: {
      accessKeyId: "env-id",
      secretAccessKey: "env-secret",
      sessionToken: "env-token",
    },
    addressing: "path",
  });
  const keys = { accessKeyId: "id", secretAccessKey: "secret" };
  const given = { ...keys, endpoint: "https://store.example/base", region: "here" };
  assertEquals(settings({ ...given, addressing: "host" }, ENV), {
    endpoint: "https://store.example/base",
    region: "here",
    credentials: keys,
    addressing: "host",
  });
  assertEquals(settings({ anonymous: true }, ENV).credentials, undefined);
});

Deno.test("s3Settings without an environment reads Amazon's public buckets", () => {
  assertEquals(settings({}), {
    endpoint: undefined,
    region: "us-east-1",
    credentials: undefined,
    addressing: "host",
  });
});

Deno.test("checkS3Options and s3Settings take an empty session token for none", () => {
  const keys = { accessKeyId: "id", secretAccessKey: "secret" };
  checkS3Options("s3", { ...keys, sessionToken: "" });
  assertEquals(settings({ ...keys, sessionToken: "" }, ENV).credentials, keys);
  assertEquals(settings({ sessionToken: "" }, ENV).credentials?.sessionToken, "env-token");
});

Deno.test("s3Settings refuses half of a pair of keys, a session token without keys, and invalid endpoints", () => {
  const wrong: [S3Options, Record<string, string>?][] = [
    [{ accessKeyId: "id" }],
    [{ secretAccessKey: "secret" }],
    [{ accessKeyId: "id" }, ENV],
    [{ sessionToken: "token" }],
    [{ sessionToken: "token" }, ENV],
    [{}, { AWS_ACCESS_KEY_ID: "id" }],
    [{ endpoint: "127.0.0.1:9000" }],
    [{ endpoint: "ftp://127.0.0.1" }],
    [{ endpoint: "http://127.0.0.1/?x" }],
  ];
  for (const [options, env] of wrong) {
    const error = assertThrows(() => settings(options, env), LeatError);
    assertEquals(error.code, "invalid_argument");
  }
});

Deno.test("s3Settings refuses keys and tokens that no header can have, without their texts", () => {
  const keys = { accessKeyId: "id", secretAccessKey: "secret" };
  const wrong: [S3Options, Record<string, string>?][] = [
    [{ ...keys, accessKeyId: "sesame\nid" }],
    [{ ...keys, accessKeyId: "sesame\n" }],
    [{ ...keys, sessionToken: "sesame\ntoken" }],
    [{}, { ...ENV, AWS_SESSION_TOKEN: "sesame\ntoken" }],
  ];
  for (const [options, env] of wrong) {
    const error = assertThrows(() => settings(options, env), LeatError, "remove line ends");
    assertEquals([error.code, error.message.includes("sesame")], ["invalid_argument", false]);
  }
});

Deno.test("readEnv finds nothing without permission", () => {
  assertEquals(readEnv("PATH"), undefined);
});

Deno.test("readEnv reads permitted variables", async () => {
  const module = import.meta.resolve("../../../platform/storage/s3_settings.ts");
  const { stdout } = await new Deno.Command("deno", {
    args: ["eval", `import { readEnv } from "${module}"; console.log(readEnv("AWS_REGION"));`],
    env: { AWS_REGION: "eu-west-1" },
  }).output();
  assertEquals(new TextDecoder().decode(stdout), "eu-west-1\n");
});
