/**
 * Reads the headers of NumPy's .npy files.
 *
 * A file has `\x93NUMPY`, two bytes of version, the length of the header (2 bytes in version 1, 4
 * in later ones), the header (a Python dictionary of `descr`, `fortran_order` and `shape`), and the
 * elements.
 */
import { shownJson, shownText } from "../../../core/shown_text.ts";
import type { DType } from "../../../core/dtype.ts";
import type { ByteRanges } from "../byte_ranges.ts";

export const NPY_HEADER_BYTES_MAX = 1024 * 1024;

/** Limit of a row's bytes, because a row is read into memory whole. */
const NPY_ROW_BYTES_MAX = 1024 * 1024 * 1024;

/** As in NumPy. A header can name half a million axes, which each row would carry along. */
const NPY_AXES_MAX = 64;

/** Limit of the rows without elements, because the size of the file does not limit them. */
const NPY_EMPTY_ROWS_MAX = 1 << 24;

const MAGIC = "\x93NUMPY";
const PREFIX_BYTES = 8;

/** What the header says about the elements. */
export interface NpyArray {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly itemBytes: number;
  readonly isBigEndian: boolean;
  /** Bytes per character of strings: 1 or 4; 0 for numbers. */
  readonly characterBytes: number;
  readonly dataOffset: number;
}

/** Dtypes by NumPy's type names, without their byte order. */
const DTYPE_OF_DESCR: Readonly<Record<string, DType>> = {
  b1: "bool",
  f2: "float16",
  f4: "float32",
  f8: "float64",
  i1: "int8",
  i2: "int16",
  i4: "int32",
  i8: "int64",
  u1: "uint8",
  u2: "uint16",
  u4: "uint32",
  u8: "uint64",
};

/**
 * Reads a header.
 *
 * @throws {LeatError} `data_loss` for a damaged or truncated file; `unimplemented` for dtypes that
 * tensors do not have, and for arrays of several axes in Fortran order, whose rows are not
 * contiguous; `invalid_argument` for a scalar, which has no rows.
 */
export async function readNpyHeader(bytes: ByteRanges): Promise<NpyArray> {
  if (bytes.sizeBytes === 0) throw bytes.damaged("it is empty");
  if (bytes.sizeBytes < PREFIX_BYTES + 2) {
    throw bytes.damaged(`it ends within the header, after ${bytes.sizeBytes} bytes`);
  }
  const prefix = await bytes.read(0, PREFIX_BYTES);
  if (String.fromCharCode(...prefix.subarray(0, MAGIC.length)) !== MAGIC) {
    throw bytes.damaged("it does not begin with \\x93NUMPY");
  }
  const version = prefix[6]!;
  if (version < 1 || version > 3) throw bytes.unsupported(`its version is ${version}, not 1 to 3`);
  const lengthBytes = version === 1 ? 2 : 4;
  const start = PREFIX_BYTES + lengthBytes;
  const view = new DataView((await bytes.read(PREFIX_BYTES, start)).buffer);
  const length = version === 1 ? view.getUint16(0, true) : view.getUint32(0, true);
  if (length > NPY_HEADER_BYTES_MAX) {
    throw bytes.damaged(
      `its header claims ${length} bytes, more than ${NPY_HEADER_BYTES_MAX} (NPY_HEADER_BYTES_MAX)`,
    );
  }
  const header = new TextDecoder(version === 3 ? "utf-8" : "latin1")
    .decode(await bytes.read(start, start + length));
  return parseHeader(bytes, header, start + length);
}

function parseHeader(bytes: ByteRanges, header: string, dataOffset: number): NpyArray {
  // Python writes texts in single or double quotes. NumPy reads both.
  const descr = /['"]descr['"]\s*:\s*(?:['"]([^'"]*)['"]|(\[))/.exec(header);
  const order = /['"]fortran_order['"]\s*:\s*(True|False)/.exec(header);
  const axes = /['"]shape['"]\s*:\s*\(([\s\dL,]*)\)/.exec(header);
  if (descr === null || order === null || axes === null) {
    const shown = shownJson(header.trim().slice(0, 200));
    throw bytes.damaged(
      `its header is ${shown}, which lacks a valid descr, fortran_order or shape`,
    );
  }
  if (descr[2] !== undefined) throw bytes.unsupported("it is an array of records");
  const shape = (axes[1]!.match(/\d+/g) ?? []).map(Number);
  if (shape.length > NPY_AXES_MAX) {
    throw bytes.damaged(`it has ${shape.length} axes, more than ${NPY_AXES_MAX} (NPY_AXES_MAX)`);
  }
  if (!shape.every(Number.isSafeInteger)) throw bytes.damaged(`its shape is [${shape.join(", ")}]`);
  if (shape.length === 0) {
    throw bytes.refused("invalid_argument", `${bytes.path} is a scalar, and has no rows.`);
  }
  if (order[1] === "True" && shape.length > 1) {
    throw bytes.unsupported(
      "its elements are in Fortran order, so its rows are not contiguous; save " +
        "np.ascontiguousarray(…) of the array",
    );
  }
  const array = { ...parseDescr(bytes, descr[1]!), shape, dataOffset };
  checkSize(bytes, array);
  return array;
}

function parseDescr(
  bytes: ByteRanges,
  descr: string,
): Pick<NpyArray, "dtype" | "itemBytes" | "isBigEndian" | "characterBytes"> {
  const [, order, name, size] = /^([<>|=]?)([A-Za-z])(\d+)$/.exec(descr) ?? [];
  const isBigEndian = order === ">";
  if (name === "S" || name === "U") {
    const characterBytes = name === "S" ? 1 : 4;
    const itemBytes = Number(size) * characterBytes;
    return { dtype: "string", itemBytes, isBigEndian, characterBytes };
  }
  const dtype = DTYPE_OF_DESCR[`${name}${size}`];
  if (dtype === undefined) {
    throw bytes.unsupported(
      `its dtype is ${shownText(descr.slice(0, 100))}; dtypes are ${
        Object.keys(DTYPE_OF_DESCR).join(", ")
      }, S and U`,
    );
  }
  return { dtype, itemBytes: Number(size), isBigEndian, characterBytes: 0 };
}

function checkSize(bytes: ByteRanges, array: NpyArray): void {
  const { shape, dataOffset, itemBytes } = array;
  // NumPy saves empty texts as items of one character. Items of no bytes take memory too, but the size of
  // the file would not limit how many there are.
  if (itemBytes === 0) throw bytes.unsupported("its dtype has items of no bytes");
  const rowBytes = rowBytesOf(array);
  if (!(rowBytes <= NPY_ROW_BYTES_MAX)) {
    throw bytes.refused(
      "resource_exhausted",
      `A row of ${bytes.path} has ${rowBytes} bytes, more than ${NPY_ROW_BYTES_MAX} (NPY_ROW_BYTES_MAX).`,
    );
  }
  if (rowBytes === 0 && shape[0]! > NPY_EMPTY_ROWS_MAX) {
    throw bytes.refused(
      "resource_exhausted",
      `${bytes.path} has ${shape[0]} rows without elements, more than ${NPY_EMPTY_ROWS_MAX} ` +
        "(NPY_EMPTY_ROWS_MAX).",
    );
  }
  const wanted = dataOffset + shape[0]! * rowBytes;
  if (bytes.sizeBytes >= wanted) return;
  throw bytes.damaged(
    `it is truncated; an array of shape [${shape.join(", ")}] takes ${wanted} bytes, and it has ` +
      `${bytes.sizeBytes}`,
  );
}

export function rowBytesOf({ shape, itemBytes }: NpyArray): number {
  return shape.slice(1).reduce((size, length) => size * length, itemBytes);
}
