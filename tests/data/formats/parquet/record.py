"""Writes small Parquet files with PyArrow, for pyarrow_files_test.ts, which has the same columns.

    pip install pyarrow==26.0.1
    python3 tests/data/formats/parquet/record.py > tests/data/formats/parquet/pyarrow_files.jsonl

Each line is a file: how it was written, and its bytes.
"""

import base64
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 90
# Runs of every length, because LZ4 writes the lengths of long ones in another way.
bits = [value for run in range(1, ROWS) for value in [run % 2] * run][:ROWS]
table = pa.table({
    "equal": pa.array([7] * ROWS, pa.int64()),
    "runs": pa.array(bits, pa.int32()),
    "double": pa.array([i // 4 / 8 for i in range(ROWS)], pa.float64()),
    "word": pa.array([f"word {i % 7}" for i in range(ROWS)]),
    "text": pa.array([None if i % 5 == 0 else "text" * (i % 10) for i in range(ROWS)]),
    "vector": pa.array([[0.5, 0.25, i % 3] for i in range(ROWS)], pa.list_(pa.float32(), 3)),
    "none": pa.array([None] * ROWS, pa.int32()),
})
ENCODINGS = {
    "plain": {"use_dictionary": ["word"]},
    "delta": {
        "use_dictionary": False,
        "column_encoding": {
            "equal": "DELTA_BINARY_PACKED",
            "runs": "DELTA_BINARY_PACKED",
            "double": "BYTE_STREAM_SPLIT",
            "text": "DELTA_LENGTH_BYTE_ARRAY",
        },
    },
    "prefixes": {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
}


def record(codec, version, encoding):
    file = io.BytesIO()
    pq.write_table(
        table, file, compression=codec, data_page_version=version, write_statistics=False,
        store_schema=False, **ENCODINGS[encoding],
    )
    assert pq.read_table(io.BytesIO(file.getvalue())).column("text").equals(table.column("text"))
    content = base64.b64encode(file.getvalue()).decode()
    fact = {"codec": codec, "version": version, "encoding": encoding, "base64": content}
    print(json.dumps(fact))


for version in ["1.0", "2.0"]:
    for codec in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
        record(codec, version, "plain")
    record("lz4", version, "delta")
    record("none", version, "prefixes")
