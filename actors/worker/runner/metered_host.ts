/** A host that counts the bytes its pipeline reads. */
import { DelegatingHost } from "../../../data/foreign/delegating_host.ts";
import type { Files, Host, OpenFile } from "../../../data/host.ts";

/** Passes everything on to another host, and counts the bytes read. */
export class MeteredHost extends DelegatingHost {
  readonly files: Files;
  /** Pipelines of other nodes run in a runner. */
  readonly runsForeign = true;
  bytesRead = 0;

  constructor(host: Host) {
    super(host);
    this.files = {
      open: async (path, signal) => this.#metered(await host.files.open(path, signal)),
      list: (pattern, signal) => host.files.list(pattern, signal),
    };
  }

  #metered(file: OpenFile): OpenFile {
    const count = (bytes: number) => {
      this.bytesRead += bytes;
      return bytes;
    };
    return {
      sizeBytes: file.sizeBytes,
      read(into, offset) {
        const read = file.read(into, offset);
        return typeof read === "number" ? count(read) : read.then(count);
      },
      close: () => file.close(),
    };
  }
}
