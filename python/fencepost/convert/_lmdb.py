"""LMDB: Open Catalyst and OGB style, pickles of samples or records of arrays under keys that count."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Unpack

import fencepost
import numpy as np

from ._errors import PickleError, SourceError, existing
from ._graphs import is_graph, write_graphs
from ._library import library
from ._names import natural
from ._write import Path, Record, WriteOptions, write

#: How the bytes of a record become values.
Encoding = Literal["auto", "pickle", "torch", "npz", "npy", "json", "bytes"]
Decode = Encoding | Callable[[bytes, bytes], Any]


def from_lmdb(
    path: Path,
    out: Path,
    *,
    decode: Decode = "auto",
    allow_pickle: bool = False,
    skip: tuple[str, ...] = ("length",),
    key: str | None = None,
    **options: Unpack[WriteOptions],
) -> fencepost.Dataset:
    """Writes the records of an LMDB database to a file, and opens it.

    Args:
        path: the file, the folder with its `data.mdb`, or a folder of `.lmdb` files, which are taken in natural order.
        decode: what the records are: `pickle`, `torch` (of `torch.save`), `npz`, `npy`, `json`, `bytes` (as they are), a
            function of key and bytes that gives a mapping or a sample of PyG, or `auto`: what the first one is.
        allow_pickle: whether pickles are read, which runs whatever code they name. Refused otherwise, without exception.
        skip: keys that are no samples.
        key: an attribute for the key of each record, as text.
        options: see `WriteOptions`.

    Keys that are plain numbers (`0`, `1`, … `10`) are taken in the order of the numbers, others in LMDB's own. Records are
    read one by one; of numbered keys, 8 bytes each are kept in memory. LMDB trusts what is in its file: a cut is noticed here, but other
    damage can end the process. Records that are samples of PyG give a file that
    `fencepost.pyg.open` reads; others have to be mappings of names to values, or give one attribute `value`.

    Raises:
        PickleError: there is a pickle, and `allow_pickle` is not set.
        SourceError: the database or a record is damaged, or of another kind than expected.
    """
    lmdb = library("lmdb", "lmdb", "from_lmdb")
    databases = [_Database(lmdb, each, skip) for each in _files(os.fspath(path))]
    try:
        reader = _Reader(decode, allow_pickle, key)
        first = next((reader.decoded(database, *item) for database in databases for item in database), None)
        total = sum(len(database) for database in databases)
        if first is not None and is_graph(first):
            if key is not None:
                raise TypeError("key: expected none for samples of PyG, found one: add it to the sample with a function for decode")
            graphs = (
                (database.path, _place(name), reader.decoded(database, name, value))
                for database in databases
                for name, value in database
            )
            return write_graphs(
                graphs, out, options, source=path, total=total, allow_pickle=allow_pickle, function="from_lmdb"
            )
        return write(lambda: (reader.record(database, *item) for database in databases for item in database),
                     out, options, source=path, total=total)  # fmt: skip
    finally:
        for database in databases:
            database.close()


def _place(key: bytes) -> str:
    return f"record {key!r}"


def _files(path: str) -> list[str]:
    if not os.path.isdir(path) or os.path.exists(os.path.join(path, "data.mdb")):
        return [path]
    names = sorted((name for name in os.listdir(path) if name.endswith(".lmdb")), key=natural)
    if not names:
        raise SourceError(path, "", "", "data.mdb, or files named *.lmdb", "neither")
    return [os.path.join(path, name) for name in names]


class _Database:
    """The records of one database, in order."""

    def __init__(self, lmdb: Any, path: str, skip: tuple[str, ...]) -> None:
        self.path, self.lmdb = path, lmdb
        self.skip = {name.encode() for name in skip}
        folder = os.path.isdir(path)
        file = os.path.join(path, "data.mdb") if folder else path
        existing(file, "a database of LMDB")
        try:
            self.env = lmdb.open(path, subdir=folder, readonly=True, lock=False, readahead=False, meminit=False)
        except lmdb.Error as error:
            raise SourceError(path, "", "", "a database of LMDB", f"a file that it does not open ({error})") from error
        try:
            expected = (self.env.info()["last_pgno"] + 1) * self.env.stat()["psize"]
            found = os.path.getsize(file)
            # The file is mapped, so a read beyond its end would end the process.
            if found < expected:
                raise SourceError(path, "", "", f"at least {expected} bytes", f"{found}: it is cut off", "copy it again")
            self.numbers = self._numbers()
        except BaseException:
            self.env.close()
            raise

    def close(self) -> None:
        self.env.close()

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """A transaction, whose errors are those of the database."""
        try:
            with self.env.begin() as transaction:
                yield transaction
        except self.lmdb.Error as error:
            raise SourceError(self.path, "", "", "a whole database", f"pages that LMDB does not read ({error})") from error

    def _keys(self, transaction: Any) -> Iterator[bytes]:
        for key in transaction.cursor().iternext(keys=True, values=False):
            if key not in self.skip:
                yield bytes(key)

    def _numbers(self) -> array[int] | None:
        """The keys as numbers in order, if all of them are."""
        numbers = array("q")
        with self._reading() as transaction:
            if transaction.get(b"nextid") is not None:
                raise SourceError(self.path, "", "", "records", "a database of ASE, which has a key nextid", "use from_ase")
            for key in self._keys(transaction):
                if not (key.isdigit() and len(key) < 19 and b"%d" % int(key) == key):
                    return None
                numbers.append(int(key))
        return array("q", np.sort(np.frombuffer(numbers, np.int64)).tobytes()) if numbers else numbers

    def __len__(self) -> int:
        if self.numbers is not None:
            return len(self.numbers)
        with self._reading() as transaction:
            return int(self.env.stat()["entries"]) - sum(transaction.get(key) is not None for key in self.skip)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        with self._reading() as transaction:
            keys = self._keys(transaction) if self.numbers is None else (b"%d" % number for number in self.numbers)
            for key in keys:
                value = transaction.get(key)
                if value is None:
                    raise SourceError(self.path, _place(key), "", "the record that was there when the keys were read", "none")
                yield key, value


class _Reader:
    """Bytes of records to values."""

    def __init__(self, decode: Decode, allow_pickle: bool, key: str | None) -> None:
        self.decode, self.allow_pickle, self.key = decode, allow_pickle, key
        self.encoding = None if decode == "auto" or callable(decode) else str(decode)
        if self.encoding is not None and self.encoding not in _DECODERS:
            raise ValueError(f"decode: expected auto, {', '.join(_DECODERS)} or a function, found {decode!r}")

    def decoded(self, database: _Database, key: bytes, value: bytes) -> Any:
        if callable(self.decode):
            return self.decode(key, value)
        where = _Where(database.path, _place(key))
        if self.decode == "auto":
            found = _sniff(value)
            self.encoding = self.encoding or found
            if found != self.encoding:
                raise SourceError(*where, "", f"{_NAMES[self.encoding]}, as the first record is", _NAMES[found], "say decode=")
        return _DECODERS[str(self.encoding)](value, where, self.allow_pickle)

    def record(self, database: _Database, key: bytes, value: bytes) -> Record:
        values = self.decoded(database, key, value)
        if is_graph(values):
            raise SourceError(database.path, _place(key), "", "values as in the first record", "a sample of PyG", "decode them alike")
        if not isinstance(values, Mapping):
            values = {"value": values}
        if self.key is not None:
            values = {self.key: key.decode("utf-8", "backslashreplace"), **values}
        return Record(database.path, _place(key), values)


class _Where(NamedTuple):
    path: str
    place: str


_NAMES = {
    "pickle": "a pickle", "torch": "an archive of torch.save", "npz": "an archive of numpy", "npy": "an array of numpy",
    "json": "a JSON object", "bytes": "bytes of no known kind",
}  # fmt: skip


def _sniff(value: bytes) -> str:
    if value[:1] == b"\x80" and value[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") and value[-1:] == b".":
        return "pickle"
    if value[:6] == b"\x93NUMPY":
        return "npy"
    if value[:4] == b"PK\x03\x04":
        try:
            names = zipfile.ZipFile(io.BytesIO(value)).namelist()
        except zipfile.BadZipFile:
            return "npz"  # which says what is wrong with it
        return "torch" if any(name.endswith("data.pkl") for name in names) else "npz"
    if value[:1] == b"{" and value[-1:] == b"}":
        return "json"
    return "bytes"


def _pickle(value: bytes, where: _Where, allow_pickle: bool) -> Any:
    if not allow_pickle:
        raise PickleError(*where, "a pickle", 'decode="bytes" to store the records as they are, or give decode a function')
    try:
        return pickle.loads(value)
    except Exception as error:  # whatever the pickled classes raise
        raise SourceError(*where, "", "a whole pickle", f"one that cannot be read ({type(error).__name__}: {error})") from error


def _torch(value: bytes, where: _Where, allow_pickle: bool) -> Any:
    library("fencepost.pyg", "torch torch_geometric", "from_lmdb")
    legacy = library("fencepost.pyg.legacy", "torch torch_geometric", "from_lmdb")
    try:
        return legacy.load(io.BytesIO(value), ": ".join(where), allow_pickle)
    except fencepost.Error as error:
        if type(error).__name__ == "PickleError":
            raise PickleError(*where, "objects that need pickle") from error
        raise SourceError.at(*where, error) from error


def _npz(value: bytes, where: _Where, allow_pickle: bool) -> Any:
    try:
        with np.load(io.BytesIO(value), allow_pickle=allow_pickle) as arrays:
            return dict(arrays)
    except Exception as error:
        raise _numpy_error(where, error) from error


def _npy(value: bytes, where: _Where, allow_pickle: bool) -> Any:
    try:
        return np.load(io.BytesIO(value), allow_pickle=allow_pickle)
    except Exception as error:
        raise _numpy_error(where, error) from error


def _numpy_error(where: _Where, error: Exception) -> SourceError:
    if "allow_pickle" in str(error):
        return PickleError(*where, "an array of objects, which numpy pickles")
    return SourceError(*where, "", "whole arrays of numpy", f"bytes that it does not read ({error})")


def _json(value: bytes, where: _Where, allow_pickle: bool) -> Any:
    try:
        return json.loads(value)
    except ValueError as error:
        raise SourceError(*where, "", "a JSON object", f"text that is none ({error})") from error


def _bytes(value: bytes, where: _Where, allow_pickle: bool) -> Any:
    return value


_DECODERS: dict[str, Callable[[bytes, _Where, bool], Any]] = {
    "pickle": _pickle, "torch": _torch, "npz": _npz, "npy": _npy, "json": _json, "bytes": _bytes,
}  # fmt: skip
