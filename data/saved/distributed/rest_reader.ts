/** Reads the rows that splits left over, which `RunWriter` wrote. */
import { LeatError } from "../../../core/error.ts";
import { ByteReader } from "../../formats/byte_reader.ts";
import { RecordReader } from "../../formats/tfrecord/tfrecord.ts";
import { END } from "../../iterator.ts";
import type { Rest } from "../ledger.ts";
import { within } from "../manifest.ts";
import { decodeElement } from "../stored_element.ts";
import type { DistributedFolder } from "./folder.ts";

/** Reads each file once. The rests of a file must be read together, in the order of their records. */
export class RestReader {
  readonly #folder: DistributedFolder;
  #path: string | undefined;
  #records: RecordReader | undefined;
  /** The number of the next record of the open file. */
  #next = 0;

  constructor(folder: DistributedFolder) {
    this.#folder = folder;
  }

  /** Rows left over from a split. Errors: `data_loss`, and those of reading files. */
  async read({ file, record }: Rest): Promise<unknown> {
    const path = within(this.#folder.settings.folder, file);
    const records = path === this.#path ? this.#records! : await this.#open(path);
    for (;;) {
      const bytes = await records.step();
      if (bytes === END) throw new LeatError("data_loss", `${path} is cut short.`);
      if (this.#next++ === record) return decodeElement(bytes as Uint8Array, path);
    }
  }

  close(): void {
    this.#records?.close();
  }

  async #open(path: string): Promise<RecordReader> {
    this.close();
    const file = await this.#folder.host.files.open(path);
    this.#records = new RecordReader(ByteReader.of({ path, file, compression: undefined }));
    this.#path = path;
    this.#next = 0;
    return this.#records;
  }
}
