/** Temporary folders of tests, which are removed when the test ends, even if it fails. */

/** Initial contents of a folder by path; text is written as UTF-8. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

/** A temporary folder. */
export class TempFolder implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async make(files: Files = {}): Promise<TempFolder> {
    const folder = new TempFolder(await Deno.makeTempDir({ prefix: "leat-" }));
    for (const [name, contents] of Object.entries(files)) {
      const path = `${folder.path}/${name}`;
      await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
      const bytes = typeof contents === "string" ? new TextEncoder().encode(contents) : contents;
      await Deno.writeFile(path, bytes);
    }
    return folder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.path, { recursive: true });
  }
}

/** Runs a function in an empty folder. */
export async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  await withFiles({}, run);
}

/** Runs a function in a folder with files. */
export async function withFiles(
  files: Files,
  run: (folder: string) => Promise<void>,
): Promise<void> {
  await using folder = await TempFolder.make(files);
  await run(folder.path);
}

/** The names in a folder, sorted. */
export async function namesIn(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
}
