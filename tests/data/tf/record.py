"""Records what tf.data answers, for facts_test.ts.

    pip install tensorflow-cpu==2.21.0
    python3 tests/data/tf/record.py tests/data/tf/facts/*.jsonl

A fact is a line: a pipeline and what came of it. Pipelines are written by hand, as lists of steps
(those of random_pipelines.jsonl were drawn); this program fills in what tf.data answers. Steps are
Leat's operators by their own names; functions are named, and are the same here and in functions.ts.
Where Leat answers something else on purpose, a fact says so: "leat" has what differs, and "why" is a
heading of docs/tf-data.md.
"""

import json
import os
import re
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

OUTCOMES_MAX = 60
ERRORS_MAX = 8  # one after the other: then it never ends

Dataset = tf.data.Dataset
experimental = tf.data.experimental


def one(fn):
    """A function of the element, whatever its structure."""
    return lambda *args: fn(args[0] if len(args) == 1 else args)


def checked(condition, x):
    with tf.control_dependencies([tf.debugging.Assert(condition, ["refused"])]):
        return tf.identity(x)


ELEMENT_FUNCTIONS = {
    "identity": lambda x: x,
    "double": lambda x: x * 2,
    "square": lambda x: x * x,
    "increment": lambda x: x + 1,
    "negate": lambda x: -x,
    "modulo3": lambda x: x % 3,
    "half": lambda x: x // 2,
    "pair": lambda x: (x, x * x),
    "record": lambda x: {"x": x, "y": x * x},
    "nested": lambda x: {"a": x, "b": (x + 1, {"c": x + 2})},
    "first": lambda x: x[0],
    "second": lambda x: x[1],
    "sum": lambda x: x[0] + x[1],
    "filled": lambda x: tf.fill([x], x),
    "three": lambda x: tf.stack([x, x + 1, x + 2]),
    "matrix": lambda x: tf.fill(tf.stack([x, 2]), x),
    "fixedAndFilled": lambda x: (x, tf.fill([x], x)),
    "text": lambda x: tf.strings.as_string(x),
    "total": lambda x: tf.reduce_sum(x),
    "twin": lambda x: (x, x),
    "boxed": lambda x: {"v": x},
    "unboxed": lambda x: x["v"],
    "swap": lambda x: (x[1], x[0]),
    "loud": lambda x: x + "!",
    "textLength": lambda x: tf.cast(tf.strings.length(x), tf.int64),
    "vectorLength": lambda x: tf.size(x, tf.int64),
    "reversed": lambda x: x[::-1],
    "failOnEmpty": lambda x: checked(tf.size(x) > 0, x),
    "failOn2": lambda x: checked(x != 2, x),
    "failOnOdd": lambda x: checked(x % 2 == 0, x),
    "failFrom3": lambda x: checked(x < 3, x),
}

PREDICATES = {
    "even": lambda x: x % 2 == 0,
    "odd": lambda x: x % 2 == 1,
    "under3": lambda x: x < 3,
    "over1": lambda x: x > 1,
    "all": lambda x: tf.constant(True),
    "none": lambda x: tf.constant(False),
    "firstEven": lambda x: x[0] % 2 == 0,
    "boxedEven": lambda x: x["v"] % 2 == 0,
    "short": lambda x: tf.size(x) < 3,
    "brief": lambda x: tf.strings.length(x) < 3,
    "failOn2": lambda x: checked(x != 2, True),
}

DATASET_FUNCTIONS = {
    "upTo": lambda x: Dataset.range(x),
    "times": lambda x: Dataset.from_tensors(x).repeat(x),
    "twice": lambda x: Dataset.from_tensors(x).repeat(2),
    "from10": lambda x: Dataset.range(10 * x, 10 * x + 3),
    "slices": lambda x: Dataset.from_tensor_slices(x),
    "batched": lambda x: Dataset.from_tensors(x).repeat(3).batch(2),
    "nothing": lambda x: Dataset.from_tensors(x).take(0),
    "failing": lambda x: Dataset.range(x).map(ELEMENT_FUNCTIONS["failOn2"]),
    "failOn2": lambda x: Dataset.range(checked(x != 2, x)),
    "upToTwice": lambda x: Dataset.range(x).flat_map(lambda y: Dataset.range(y)),
    "window": lambda x: x,
    "windowBatch": lambda x: x.batch(10),
    "windowZipBatch": lambda x: Dataset.zip(x).batch(10),
    "windowTwice": lambda x: x.concatenate(x),
}

KEYS = {
    "modulo2": lambda x: x % 2,
    "modulo3": lambda x: x % 3,
    "modulo10": lambda x: x % 10,
    "identity": lambda x: x,
    "negate": lambda x: -x,
    "zero": lambda x: tf.constant(0, tf.int64),
    "failOn2": lambda x: checked(x != 2, x % 2),
    "size": lambda x: tf.size(x),
    "first": lambda x: x[0],
    "boxed": lambda x: x["v"],
    "textLength": lambda x: tf.strings.length(x),
}

REDUCES = {
    "batch": lambda key, window: window.batch(4),
    "keyed": lambda key, window: window.batch(100).map(lambda x: (key, x)),
    "same": lambda key, window: window,
    "twice": lambda key, window: window.concatenate(window),
    "count": lambda key, window: window.batch(100).map(lambda x: tf.size(x, tf.int64)),
    "nothing": lambda key, window: window.take(0),
    "enumerated": lambda key, window: window.enumerate(key),
    "padded": lambda key, window: window.padded_batch(100),
    "failOnKey1": lambda key, window: window.take(checked(key != 1, tf.constant(100, tf.int64))),
}

WINDOW_SIZES = {
    "key": lambda key: key,
    "keyAndOne": lambda key: key + 1,
    "twiceKeyAndTwo": lambda key: (key + 1) * 2,
}

SCANS = {
    "runningSum": lambda state, x: (state + x, state + x),
    "fibonacci": lambda state, _: ((state[1], state[0] + state[1]), state[0]),
    "failOn2": lambda state, x: (state + checked(x != 2, x), state + x),
    "pairs": lambda state, x: (x, (state, x)),
    "counted": lambda state, x: (state + 1, (state, x)),
}

REDUCERS = {
    "sum": (lambda key: tf.constant(0, tf.int64), lambda state, x: state + x, lambda state: state),
    "mean": (
        lambda key: (key, tf.constant(0, tf.int64), tf.constant(0, tf.int64)),
        lambda state, x: (state[0], state[1] + x, state[2] + 1),
        lambda key, total, count: (key, total // count),
    ),
}


def decode(value):
    """{"tuple": [...]} is a tuple; lists are tensors."""
    if isinstance(value, dict):
        if "tuple" in value:
            return tuple(decode(part) for part in value["tuple"])
        if "dtype" in value:
            return tf.constant(value["of"], value["dtype"])
        return {key: decode(part) for key, part in value.items()}
    if isinstance(value, str):
        return value
    if isinstance(value, list) and any(isinstance(at, str) for at in value):
        return tf.constant(value)
    has_fractions = "." in json.dumps(value)
    return tf.constant(value, tf.float64 if has_fractions else tf.int64)


def encode(value):
    if isinstance(value, tf.data.Dataset):
        return {"dataset": outcomes(value)}
    if isinstance(value, tf.RaggedTensor):
        return {"ragged": plain(value.to_list())}
    if isinstance(value, (tuple, list)):
        return {"tuple": [encode(part) for part in value]}
    if isinstance(value, dict):
        return {key: encode(part) for key, part in value.items()}
    return plain(value.numpy().tolist() if hasattr(value.numpy(), "tolist") else value.numpy())


def plain(value):
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)  # as JavaScript writes it
    return value.decode() if isinstance(value, bytes) else value


def outcomes(dataset):
    answers = []
    iterator = iter(dataset)
    errors = 0
    while len(answers) < OUTCOMES_MAX and errors < ERRORS_MAX:
        try:
            answers.append(encode(next(iterator)))
            errors = 0
        except StopIteration:
            break
        except tf.errors.OpError as error:
            answers.append({"error": snake(type(error).__name__.removesuffix("Error"))})
            errors += 1
    return answers


def snake(name):
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def snaked(options):
    return {snake(key): value for key, value in options.items()}


def shapes_of(spec):
    if isinstance(spec, (tuple, list)):
        return {"tuple": [shapes_of(part) for part in spec]}
    if isinstance(spec, dict):
        return {key: shapes_of(part) for key, part in spec.items()}
    if isinstance(spec, tf.TensorSpec):
        return None if spec.shape.rank is None else spec.shape.as_list()
    return None


def written(contents):
    """Paths of files with these contents; of none where there are no contents."""
    folder = tempfile.mkdtemp()
    paths = []
    for number, text in enumerate(contents):
        paths.append(f"{folder}/{number}.txt")
        if text is not None:
            with open(paths[-1], "wb") as file:
                file.write(text.encode())
    return paths


CSV_DTYPES = {"int32": tf.int32, "int64": tf.int64, "float32": tf.float32, "float64": tf.float64,
              "string": tf.string}


def csv(contents, options):
    columns = [at if isinstance(at, dict) else {"dtype": at} for at in options["columns"]]
    defaults = [tf.constant([at["default"]] if "default" in at else [], CSV_DTYPES[at["dtype"]])
                for at in columns]
    names = {"delimiter": "field_delim", "select": "select_cols", "exclude": "exclude_cols"}
    how = {names.get(key, snake(key)): at for key, at in options.items() if key != "columns"}
    return experimental.CsvDataset(written(contents), defaults, **how)


def step(dataset, name, args):
    options = args[-1] if args and isinstance(args[-1], dict) else {}
    if name == "textLines":
        return tf.data.TextLineDataset(written(args[0]), **snaked(options))
    if name == "fixedLengthRecords":
        return tf.data.FixedLengthRecordDataset(written(args[0]), **snaked(options))
    if name == "tfRecords":
        return tf.data.TFRecordDataset(written(args[0]))
    if name == "csv":
        return csv(args[0], options)
    if name == "range":
        return Dataset.range(*args)
    if name == "counter":
        return Dataset.counter(*args)
    if name == "fromTensorSlices":
        return Dataset.from_tensor_slices(decode(args[0]))
    if name == "fromTensors":
        return Dataset.from_tensors(decode(args[0]))
    if name == "fromRagged":
        rows = tf.ragged.constant(args[0], dtype=tf.int64, ragged_rank=1)
        return Dataset.from_tensor_slices(rows).map(lambda x: x)
    if name == "zipAll":
        parts = {k: build(v) for k, v in args[0].items()} if isinstance(args[0], dict) else tuple(
            build(part) for part in args[0])
        return Dataset.zip(parts)
    if name == "chooseFrom":
        return Dataset.choose_from_datasets([build(at) for at in args[0]], build(args[1]),
                                            **snaked(options))
    if name == "sampleFrom":
        how = snaked(options)
        if isinstance(how.get("weights"), list):
            how["weights"] = [float(at) for at in how["weights"]]
        return Dataset.sample_from_datasets([build(at) for at in args[0]], **how)
    if name == "map":
        return dataset.map(one(ELEMENT_FUNCTIONS[args[0]]), **snaked(options))
    if name == "filter":
        return dataset.filter(one(PREDICATES[args[0]]))
    if name == "takeWhile":
        return dataset.take_while(one(PREDICATES[args[0]]))
    if name == "flatMap":
        return dataset.flat_map(one(DATASET_FUNCTIONS[args[0]]))
    if name == "interleave":
        return dataset.interleave(one(DATASET_FUNCTIONS[args[0]]), **snaked(options))
    if name == "scan":
        return dataset.scan(decode(args[0]), SCANS[args[1]])
    if name == "zip":
        return Dataset.zip((dataset, build(args[0])))
    if name == "concatenate":
        return dataset.concatenate(build(args[0]))
    if name == "window":
        return dataset.window(args[0], **snaked(options))
    if name == "paddedBatch":
        how = snaked(options)
        for key in ("padded_shapes", "padding_values"):
            if key in how:
                how[key] = padding(how[key], key)
        return dataset.padded_batch(args[0], **how)
    if name == "groupByWindow":
        how = dict(key_func=one(lambda x: tf.cast(KEYS[options["key"]](x), tf.int64)),
                   reduce_func=REDUCES[options["reduce"]])
        size = options["windowSize"]
        if isinstance(size, str):
            return dataset.group_by_window(**how, window_size_func=WINDOW_SIZES[size])
        return dataset.group_by_window(**how, window_size=size)
    if name == "groupByReducer":
        reducer = experimental.Reducer(*REDUCERS[options["reducer"]])
        key = one(lambda x: tf.cast(KEYS[options["key"]](x), tf.int64))
        return dataset.apply(experimental.group_by_reducer(key, reducer))
    if name == "bucketBySequenceLength":
        how = snaked({key: at for key, at in options.items() if key not in
                      ("length", "boundaries", "batchSizes")})
        if "padding_values" in how:
            how["padding_values"] = padding(how["padding_values"], "padding_values")
        return dataset.bucket_by_sequence_length(
            one(lambda x: tf.cast(KEYS[options["length"]](x), tf.int32)),
            options["boundaries"], options["batchSizes"], **how)
    if name == "assertCardinality":
        return dataset.apply(experimental.assert_cardinality(
            -1 if args[0] == "infinite" else args[0]))
    if name == "padToCardinality":
        return dataset.apply(experimental.pad_to_cardinality(*args))
    args = args[:-1] if options else args
    return getattr(dataset, snake(name))(*args, **snaked(options))


def padding(value, key):
    if isinstance(value, dict) and "tuple" in value:
        return tuple(padding(part, key) for part in value["tuple"])
    if isinstance(value, dict):
        return {name: padding(part, key) for name, part in value.items()}
    if key == "padded_shapes":
        return [None if at == -1 else at for at in value]
    return tf.constant(value, tf.int64) if isinstance(value, int) else value


def build(steps):
    dataset = None
    for name, *args in steps:
        dataset = step(dataset, name, args)
    return dataset


def ending(steps):
    """The last step, where it makes no dataset."""
    return steps[-1] if steps[-1][0] in ("reduce", "getSingleElement", "at") else None


def record(steps, unread):
    try:
        last = ending(steps)
        if last is not None:
            dataset = build(steps[:-1])
            if last[0] == "reduce":
                value = dataset.reduce(decode(last[1]), SCANS_AS_REDUCE[last[2]])
            elif last[0] == "at":
                value = experimental.at(dataset, last[1])
            else:
                value = dataset.get_single_element()
            return {"value": encode(value)}
        dataset = build(steps)
    except tf.errors.OpError as error:
        return {"refused": snake(type(error).__name__.removesuffix("Error"))}
    except (ValueError, TypeError, IndexError) as error:
        return {"refused": type(error).__name__}
    cardinality = int(dataset.cardinality())
    named = {-1: "infinite", -2: "unknown"}.get(cardinality, cardinality)
    try:
        shapes = {"shapes": shapes_of(dataset.element_spec)}
    except Exception:  # a spec that has no shape
        shapes = {}
    if unread:  # some of these would never end
        return {"cardinality": named}
    return {"cardinality": named, **shapes, "elements": outcomes(dataset)}


SCANS_AS_REDUCE = {
    "runningSum": lambda state, x: state + x,
    "count": lambda state, _: state + 1,
}


def main(paths):
    for path in paths:
        with open(path) as file:
            facts = [json.loads(line) for line in file]
        lines = []
        for fact in facts:
            kept = {key: fact[key] for key in ("unread", "leat", "why") if key in fact}
            answer = record(fact["pipeline"], "unread" in fact)
            recorded = {"pipeline": fact["pipeline"], "tf": answer, **kept}
            lines.append(json.dumps(recorded, separators=(",", ":"), ensure_ascii=False) + "\n")
        with open(path, "w") as file:
            file.writelines(lines)
        print(path, len(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
