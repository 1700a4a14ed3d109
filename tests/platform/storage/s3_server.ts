/** A real S3-compatible server on loopback, in a process of its own, for tests of object stores. */

import { AwsClient } from "aws4fetch";
import type { S3Options } from "../../../platform/storage/s3_settings.ts";

/** The keys that the server knows. */
const KEYS = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };

const MD5_OF_NOTHING = "d41d8cd98f00b204e9800998ecf8427e";

/** A server with one empty bucket, named `bucket`. */
export class S3Server implements AsyncDisposable {
  readonly port: number;
  readonly #process: Deno.ChildProcess;
  readonly #folder: string;
  readonly #client = new AwsClient({ ...KEYS, service: "s3", region: "us-east-1", retries: 0 });

  private constructor(port: number, process: Deno.ChildProcess, folder: string) {
    this.port = port;
    this.#process = process;
    this.#folder = folder;
  }

  static async start(): Promise<S3Server> {
    const folder = await Deno.makeTempDir();
    const program = `${import.meta.dirname}/fixture_s3_server.ts`;
    const rights = [
      "--allow-env",
      "--allow-net=127.0.0.1",
      "--allow-read",
      `--allow-write=${folder}`,
    ];
    const process = new Deno.Command("deno", {
      args: ["run", "--no-check", "--no-prompt", ...rights, program, folder],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const lines = process.stdout.pipeThrough(new TextDecoderStream());
    for await (const line of lines) return new S3Server(Number(line), process, folder);
    throw new Error("the S3 server said no port");
  }

  /** Its address, with the keys to it. */
  get options(): S3Options & { endpoint: string } {
    return { ...KEYS, endpoint: `http://127.0.0.1:${this.port}`, region: "us-east-1" };
  }

  /** Stores an object. */
  async put(key: string, contents: string | Uint8Array<ArrayBuffer>): Promise<void> {
    const path = key.split("/").map(encodeURIComponent).join("/");
    const url = `${this.options.endpoint}/bucket/${path}`;
    const response = await this.#client.fetch(url, { method: "PUT", body: contents });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`storing ${key}: ${response.status}`);
  }

  /**
   * Stores empty objects directly in the server's files, which saves a thousand requests. The keys
   * share a folder.
   */
  async putEmpty(folder: string, names: readonly string[]): Promise<void> {
    const path = `${this.#folder}/bucket/${folder}`;
    await Deno.mkdir(path, { recursive: true });
    for (const name of names) {
      Deno.writeTextFileSync(`${path}/${name}._S3rver_object`, "");
      Deno.writeTextFileSync(`${path}/${name}._S3rver_object.md5`, MD5_OF_NOTHING);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.stdin.close();
    await this.#process.status;
    await Deno.remove(this.#folder, { recursive: true });
  }
}
