/** An S3-compatible server as a program: it prints its port, and ends when its input does. */

import crypto from "node:crypto";
import S3rver from "@20minutes/s3rver";

/**
 * The server encrypts the continuation token of a listing with a cipher that Deno lacks; only the
 * server reads it, so another cipher works.
 */
for (const name of ["createCipheriv", "createDecipheriv"] as const) {
  const make = crypto[name] as typeof crypto.createCipheriv;
  const twice = (bytes: unknown) => Buffer.concat([bytes as Buffer, bytes as Buffer]);
  Object.assign(crypto, {
    [name]: (_des: string, key: unknown, iv: unknown) => make("aes-128-cbc", twice(key), twice(iv)),
  });
}

const [folder] = Deno.args;
const server = new S3rver({
  address: "127.0.0.1",
  port: 0,
  silent: true,
  directory: folder,
  vhostBuckets: false,
  configureBuckets: [{ name: "bucket" }],
});
const { port } = await server.run();
console.log(port);
await Deno.stdin.readable.pipeTo(new WritableStream());
Deno.exit();
