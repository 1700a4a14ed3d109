"""Loaders: a pipeline, run beside this process or by a service, as an iterable of batches."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from ._arguments import check, plain
from ._checkpoint import Checkpoint
from ._connection import Connection
from ._errors import LeatError
from ._ranks import Consumer, consumer_of, require_alone
from ._stream import Position, Stream


def load(
    pipeline: str | os.PathLike[str],
    *,
    args: Mapping[str, Any] | None = None,
    export: str | None = None,
    seed: int | np.integer[Any] | None = None,
    service: str | None = None,
    token: str | None = None,
    ca: str | None = None,
    mode: str | None = None,
    job: str | None = None,
    consumer: Consumer = None,
    options: Mapping[str, Any] | None = None,
    reuse: bool = False,
    memory: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    allow: Sequence[str] = (),
) -> Loader:
    """Opens a pipeline.

    Args:
        pipeline: The path of a TypeScript or JavaScript module. Its default export, or else its only
            one, is a `Dataset`, or a function that returns one.
        args: The argument of that function.
        export: Which export of the module.
        seed: The seed of all random numbers, instead of that of `withOptions` in the pipeline. Operators
            with a `seed` of their own keep it. A `cache(path)` that was filled with another seed is
            refused.
        service: The dispatcher of a cluster that runs the pipeline, `ws://host:port`. Default: the
            pipeline runs in a process beside this one.
        token: The token that authenticates this client to the service.
        ca: PEM certificates of authorities to trust, for `wss://…`.
        mode: How workers share the work: `OFF`, `DYNAMIC`, `DETERMINISTIC`, …; default `OFF`.
        job: The name under which clients share the elements.
        consumer: `(rank, world)`: which part of the elements is for this process. `"auto"` takes both
            from `torch.distributed` or `jax.distributed`, or from RANK and WORLD_SIZE: call it when they
            are initialized. With a service, `job` is needed, too. Without a service, the helper process
            computes all batches, in one order, and gives every `world`-th.
        options: Further options of `distribute()`, as in TypeScript: `runId`, `sharing`,
            `compression`, `targetWorkers`, `targetTags`, `maxOutstandingRequests`,
            `bufferBytesMax`.
        reuse: Whether the next batch may overwrite a batch, even if the program still has arrays of it.
            Default: a batch's memory is reused when the program has dropped its last array.
        memory: Limit of the bytes of large batches that the program keeps. Default: half of the
            machine's available memory, of the container's limit, or of the free space on the disk of
            `folder`: the least of them.
        folder: Where the files of shared memory are made, not in /dev, /proc or /sys. Default: the folder for
            temporary files.
        allow: Further permissions of the helper process, as Deno names them: `"net=example.org"`,
            `"write=/data/cache"`; and `"python"`, for Python functions. Without them, the helper may
            read files, environment variables of AWS and facts about the machine, and load native
            libraries; with a service it may connect to all hosts, unless an entry names hosts.

    Raises:
        LeatError: `not_found` where there is no such file or folder; `unavailable` where the packages of
            the first loader cannot be downloaded; what the pipeline's module throws; `invalid_argument` for
            arguments of another type, and for options that do not fit together; `failed_precondition` for a
            `consumer` of a module that reads from a service in no fixed order. If nothing answers at
            `service`, the iterator raises `unavailable`.

    Example:
        >>> loader = leat.load("pipeline.ts", args={"split": "train"}, seed=7)  # doctest: +SKIP
        >>> for batch in loader: train(batch)                                   # doctest: +SKIP
    """
    if pipeline is None:
        raise LeatError("invalid_argument", "pipeline is the path of a module, not None")
    check(pipeline=pipeline, args=args, export=export, seed=seed, memory=memory, folder=folder, allow=allow)
    path = _absolute(pipeline).resolve()
    if not path.is_file():
        raise LeatError("not_found", f"There is no pipeline {path}")
    part = consumer_of(consumer)
    request = {
        **{"pipeline": str(path), "args": plain(args, "args")},
        **{"export": export, "seed": None if seed is None else int(seed)},
        **_reading(service, token, ca, mode, job, part, options),
    }
    return Loader(request, reuse, memory, folder, _allowed(service, allow), consumer == "auto" and part is None)


def from_id(
    dataset_id: str,
    *,
    service: str,
    token: str | None = None,
    ca: str | None = None,
    mode: str | None = None,
    job: str | None = None,
    consumer: Consumer = None,
    options: Mapping[str, Any] | None = None,
    reuse: bool = False,
    memory: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    allow: Sequence[str] = (),
) -> Loader:
    """Opens a dataset that was registered with a service, by its id there.

    The other arguments are those of `load`; `options` has no `compression`. Under DETERMINISTIC, if a part
    of the pipeline's functions runs at the reader, allow `"run=deno"`, or give the option `trustPipeline`.
    """
    if dataset_id is None or service is None:
        raise LeatError("invalid_argument", f"dataset_id and service are texts, not {dataset_id!r} and {service!r}")
    check(dataset_id=dataset_id, memory=memory, folder=folder, allow=allow)
    part = consumer_of(consumer)
    request = {"datasetId": dataset_id, **_reading(service, token, ca, mode, job, part, options)}
    return Loader(request, reuse, memory, folder, _allowed(service, allow), consumer == "auto" and part is None)


def _absolute(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).absolute()
    except FileNotFoundError as error:
        raise LeatError(
            "failed_precondition",
            f"{os.fspath(path)!r} begins in the working directory of this process, which was removed: call os.chdir() with one that exists",
        ) from error


def _allowed(service: str | None, allow: Sequence[str]) -> Sequence[str]:
    # Any host: only the dispatcher knows the addresses of workers.
    return allow if service is None or any(item.startswith("net") for item in allow) else [*allow, "net"]


def _reading(
    service: str | None,
    token: str | None,
    ca: str | None,
    mode: str | None,
    job: str | None,
    consumer: tuple[int, int] | None,
    options: Mapping[str, Any] | None,
) -> dict[str, Any]:
    check(service=service, token=token, ca=ca, mode=mode, job=job, options=options)
    if service is None:
        given = {"token": token, "ca": ca, "mode": mode, "job": job, "options": options}
        unused = [name for name, value in given.items() if value is not None]
        if unused:
            raise LeatError("invalid_argument", f"{', '.join(unused)}: only with a service, and none is given")
        return {} if consumer is None else {"shard": {"index": consumer[0], "count": consumer[1]}}
    index, count = consumer if consumer is not None else (None, None)
    distribution = {
        **{"service": service, "token": token, "ca": ca, "processingMode": mode, "jobName": job},
        **{"consumerIndex": index, "numConsumers": count},
    }
    others = plain(options or {}, "options")
    twice = [name for name in others if distribution.get(name) is not None]
    if twice:
        raise LeatError("invalid_argument", f"options has {', '.join(twice)}, which another argument has, too: give one")
    if consumer is not None and job is None and others.get("jobName") is None:
        raise LeatError("invalid_argument", f"consumer={consumer} with a service needs job=, so that the consumers meet in one job")
    return {"service": {name: value for name, value in {**distribution, **others}.items() if value is not None}}


class Loader:
    """An iterable of batches, made by `load` and `from_id`. Each `iter()` of it is an epoch.

    A loader can be pickled for a spawned process. There it is an independent loader of the same
    pipeline, at the beginning or at the position that `load_state_dict` was given.
    """

    def __init__(
        self,
        request: dict[str, Any],
        reuse: bool,
        memory: int | None,
        folder: str | os.PathLike[str] | None,
        allow: Sequence[str],
        is_alone: bool = False,
    ) -> None:
        """`is_alone`: whether `consumer="auto"` has found no other process."""
        where = None if folder is None else str(_absolute(folder))
        self._arguments = (request, reuse, memory, where, tuple(allow), is_alone)
        self._resume: Checkpoint | None = None
        self._prepare()
        with self._connection.lock:
            self._connection.open()

    def _prepare(self) -> None:
        request, self._reuse, memory, folder, allow, self._is_alone = self._arguments
        self._connection = Connection(request, memory, folder, allow)
        self._stream: Stream | None = None
        # The position of `_stream`, if Ctrl-C made its helper unusable: the next call of its iterator continues there.
        self._interrupted_at: Checkpoint | None = None
        # Whether an iteration was begun, even if that failed.
        self._has_begun = False
        # How many epochs were begun after the one that `load_state_dict` restored, or since the beginning.
        self._epochs = 0
        self._follows = Checkpoint()
        # The number of the helper that has begun the last epoch.
        self._counting = 0
        weakref.finalize(self, self._connection.close_in_turn)

    def __getstate__(self) -> dict[str, Any]:
        return {"_arguments": self._arguments, "_resume": self._resume}

    def __setstate__(self, stored: dict[str, Any]) -> None:
        self.__dict__.update(stored)
        self._prepare()

    def __iter__(self) -> LoaderIterator:
        """Begins the next epoch, or continues from what `load_state_dict` was given.

        An earlier iterator of this loader then raises `failed_precondition`.

        Raises:
            LeatError: `failed_precondition` if `consumer="auto"` would now give this process a part only.
        """
        if self._is_alone:
            require_alone()
        with self._connection.lock:
            if self._has_begun and self._resume == Checkpoint():
                self._connection.close()  # Only another helper begins with the first epoch again.
            self._connection.open()
            self._replace()
            self._has_begun = True
            return LoaderIterator(self, self._begin(self._resume))

    def _continued(self, stream: Stream) -> Stream:
        """The stream, or one that begins where it is, in another helper, if Ctrl-C made that of the stream unusable."""
        if stream is not self._stream:
            return stream
        if self._interrupted_at is None:
            if stream.is_replaced or stream.is_over or not self._connection.helper.is_interrupted:
                return stream
            self._interrupted_at = stream.checkpoint()
        self._connection.open()
        begun = self._begin(self._interrupted_at)
        begun.keeps = stream.keeps
        return begun

    def _begin(self, resume: Checkpoint | None) -> Stream:
        """The stream of a position, or of the next epoch."""
        is_new, self._counting = self._counting != self._connection.helpers, self._connection.helpers
        # A helper counts its epochs. One that replaces it begins where that one was.
        follows, epochs = (self._follows, self._epochs) if is_new else (Checkpoint(), 0)
        try:
            stream = Stream(self._connection, resume or follows, self._reuse, 0 if resume else epochs)
        except BaseException:
            # The helper may have counted this epoch, or not, and may still be starting it. Another one begins with it again.
            self._connection.close()
            raise
        if self._stream is not None:
            self._stream.is_replaced = True
        self._stream = stream
        if resume is None:
            self._epochs += 1
        else:
            self._follows, self._epochs = Checkpoint(resume.state, ended=resume.state is not None), int(resume.ended or resume.state is None)
        self._resume = self._interrupted_at = None
        return stream

    def __len__(self) -> int:
        """How many batches an epoch has.

        Raises:
            TypeError: if the number is unknown, or the batches never end.
        """
        with self._connection.lock:
            if self._connection.helpers == 0:  # Otherwise the number is known, and to replace a helper ends its iteration.
                self._connection.open()
            if not 0 <= self._connection.cardinality < float("inf"):
                raise TypeError("This pipeline's number of batches is unknown, or it is endless")
            return int(self._connection.cardinality)

    def __bool__(self) -> bool:
        """True, so that `if loader:` does not ask for a number of batches that may be unknown."""
        return True

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that the program got: text and numbers.

        It takes a few hundred bytes if the pipeline's own state does. A pipeline that buffers data,
        such as records in a shuffle buffer, saves that data, and the batches on their way.
        """
        with self._connection.lock:
            position = self._resume or self._interrupted_at
            if position is None:
                position = Checkpoint() if self._stream is None else self._stream.checkpoint()
            return self._stored(position)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Lets the next `iter()` continue from a position of this pipeline, saved in any process.

        If the position is the end of an epoch, the next epoch begins.

        Raises:
            LeatError: `invalid_argument` for what `state_dict()` did not return, `data_loss` for a damaged state, and
                `failed_precondition` for one of another `consumer`. `iter()` raises it for a state of another pipeline.
        """
        with self._connection.lock:
            resume = Checkpoint.from_dict(state_dict)
            saved = state_dict.get("consumer", self._consumer)
            if saved != self._consumer:
                raise LeatError(
                    "failed_precondition",
                    f"The state is of a loader with consumer={str(saved):.40}, and this one has consumer={self._consumer}: let each "
                    "rank load the state that it saved, with the same number of processes",
                )
            self._resume = resume
            self._replace()

    def explain(self) -> str:
        """The figures of each operator in the current epoch, the slowest operator, and the decision of `offload()`."""
        with self._connection.lock:
            if self._stream is None or self._stream.is_replaced:
                raise LeatError("failed_precondition", "Nothing is being read: iterate first")
            return str(self._connection.ask("explain", {"iteration": self._stream.number}))

    def close(self) -> None:
        """Ends the helper. Arrays stay valid. Idempotent. Garbage collection of the loader also ends it.

        If another thread waits for a batch of this loader, its call ends with a `LeatError` of code `cancelled`.
        """
        with self._connection.lock_to_close():
            self._replace()
            self._connection.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _consumers(self) -> int:
        """How many processes divide the elements, as `consumer` says."""
        request = self._arguments[0]
        return int(request.get("shard", {}).get("count") or request.get("service", {}).get("numConsumers", 1))

    @property
    def _consumer(self) -> str:
        """The consumer of a local pipeline, as text that any format can store. With a service, a position is that of all."""
        shard = self._arguments[0].get("shard")
        return str(None if shard is None else (shard["index"], shard["count"]))

    def _stored(self, position: Checkpoint) -> dict[str, Any]:
        """A position as the program saves it."""
        return position.to_dict() | ({} if position.state is None else {"consumer": self._consumer})

    def _for_worker(self, worker: int, workers: int, seed: int) -> Loader:
        """A loader of every `workers`-th batch of this one, for worker `worker` of a `DataLoader`.

        `seed` is for a pipeline that has none. A consumer's workers do not use it: each rank draws another one.
        """
        if self._connection.is_open:
            self._connection.helper.require_own_process()
        if self._resume is not None:
            raise LeatError(
                "failed_precondition",
                "A position of the whole loader is no position of the parts that workers of a DataLoader read: "
                "use num_workers=0, or a StatefulDataLoader from the beginning",
            )
        # Not `reuse`: the DataLoader copies a batch while its worker takes the next one.
        request, _, memory, folder, allow, _ = self._arguments
        service = request.get("service")
        if service is None:
            shard = request.get("shard") or {"index": 0, "count": 1, "seed": seed}
            index, count = _nth(shard["index"], shard["count"], worker, workers)
            part = {**request, "shard": {**shard, "index": index, "count": count}}
        elif service.get("jobName") is None:
            raise LeatError(
                "invalid_argument",
                "Each worker of the DataLoader would read the whole service: give a job, or use num_workers=0",
            )
        elif "numConsumers" in service or service.get("processingMode") == "DETERMINISTIC":
            index, count = _nth(service.get("consumerIndex", 0), service.get("numConsumers", 1), worker, workers)
            part = {**request, "service": {**service, "consumerIndex": index, "numConsumers": count}}
        else:
            part = request  # The clients of a job share its elements.
        return Loader(part, False, memory, folder, allow)

    def _replace(self) -> None:
        self._interrupted_at = None
        if self._stream is not None:
            self._stream.is_replaced = True


def _nth(index: int, count: int, worker: int, workers: int) -> tuple[int, int]:
    """The shard of every `workers`-th batch of every `count`-th batch."""
    return index + count * worker, count * workers


class LoaderIterator(Iterator[Any]):
    """One epoch of a loader."""

    def __init__(self, loader: Loader, stream: Stream) -> None:
        # This reference keeps the loader's helper running while its iterator is used.
        self._loader = loader
        self._stream = stream

    def __next__(self) -> Any:
        """The next batch.

        Raises:
            LeatError: the error of an element. The next call continues after this element.
                `resource_exhausted` if the program keeps too many batches.
        """
        with self._loader._connection.lock:
            self._stream = self._loader._continued(self._stream)
            return self._stream.next()

    def _keep(self) -> None:
        """Lets the stream keep what was taken, until it is told to forget it."""
        self._stream.keeps = True

    def _position(self) -> Position:
        """The position after the last batch."""
        with self._loader._connection.lock:
            return self._stream.position()

    def _state(self, position: Position) -> dict[str, Any]:
        """A position as the program saves it."""
        with self._loader._connection.lock:
            return self._loader._stored(position.checkpoint())
