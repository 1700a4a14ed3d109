/** `wav`: the audio of WAV files. */
import { ByteReader } from "../formats/byte_reader.ts";
import type { FormatReader, ReadFrom, SourceFile } from "../formats/format_reader.ts";
import { type WholeFilePosition, wholeFileReader } from "../formats/whole_file.ts";
import type { DecodedAudio, Host } from "../host.ts";
import { registerNode } from "../node.ts";
import { type ElementSpec, TensorSpec } from "../elements/spec.ts";
import { fileOptions, FileSourceNode, type FileSourceOptions } from "./file_source.ts";

/** The audio of one file, and its path. */
export interface AudioFile extends DecodedAudio {
  /** The path of the file. */
  readonly path: string;
}

/** Reads each file as its path, samples and sample rate. A file that cannot be decoded is lost. */
export class WavNode extends FileSourceNode {
  static readonly options = fileOptions("wav");
  constructor(files: unknown, options?: FileSourceOptions) {
    super("wav", files, options);
  }

  override get isOnePerFile(): boolean {
    return true;
  }

  override get elementSpec(): ElementSpec {
    return {
      path: new TensorSpec("string", []),
      samples: new TensorSpec("float32", [null, null]),
      sampleRate: new TensorSpec("int32", []),
    };
  }

  override openReader(source: SourceFile, { position }: ReadFrom, host: Host): FormatReader {
    const decode = (contents: Uint8Array): AudioFile => ({
      path: source.path,
      ...host.audio.decodeWav(contents),
    });
    return wholeFileReader(ByteReader.of(source), decode, position as WholeFilePosition);
  }
}

registerNode("wav", { fromWire: (a, [files]) => new WavNode(files, a) });
