"""Records of any source to a file: streamed, named in errors, published only when complete."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypedDict, cast

import fencepost

from ._errors import SourceError
from ._inferred import Additions

#: A file's path.
Path = str | os.PathLike[str]


class WriteOptions(TypedDict, total=False):
    """What all importers take.

    schema: names, dtypes, shapes; by default the first record says them, by PyG's rules of naming, or the source does.
    optional: names that a record may lack. Without a schema, the source is read until each has been seen once.
    metadata: a mapping that goes into the file. narrow: store the smallest types that hold every value exactly.
    overwrite: whether a file of the same name is replaced (True). progress: whether to show a bar (False).
    """

    schema: fencepost.Schema | None
    optional: Iterable[str]
    metadata: Mapping[str, Any] | None
    narrow: bool
    overwrite: bool
    progress: bool


class Record(NamedTuple):
    """What becomes a sample, and where it is from in words that an error begins with."""

    path: str
    place: str
    values: Mapping[str, Any]
    axes: Mapping[str, int] | None = None


def write(
    records: Callable[[], Iterable[Record]],
    out: Path,
    options: WriteOptions,
    *,
    source: Path,
    total: int | None = None,
    schema: fencepost.Schema | None = None,
) -> fencepost.Dataset:
    """Writes all records, or leaves what was at `out`; `records` begins anew at each call. `schema` is the source's own."""
    given = options.get("schema")
    optional = list(options.get("optional", ()))
    if given is not None and optional:
        raise TypeError("optional: expected no schema beside it, found one: declare its attributes optional instead")
    known = given or schema
    if known is not None and optional:
        known = _optional(known, optional, source)
    elif optional:
        known = _learn(records(), optional, source)
    additions = Additions(known) if known is not None else None
    count = 0
    with fencepost.Writer(
        out,
        known,
        metadata=options.get("metadata"),
        overwrite=options.get("overwrite", True),
        # As in schemas that a writer infers: PyG takes indices as they are.
        check_indices=given is not None,
        narrow=options.get("narrow", False),
        progress=options.get("progress", False),
        total=total,
    ) as writer:
        for record in records():
            _append(writer, record, additions)
            count += 1
        if count == 0 and known is None:
            raise SourceError(source, "", "", "at least one record, since the first says the attributes", "none", "pass schema=")
    return fencepost.open(out)


def _append(writer: fencepost.Writer, record: Record, additions: Additions | None = None) -> None:
    try:
        values, axes = additions.complete(record.values, record.axes) if additions else (record.values, record.axes)
        writer.append(values, axes=axes)
    except fencepost.SampleError as error:
        advice = "a record may lack what optional= names" if error.found == "no value" else "convert it, or pass schema="
        raise SourceError(record.path, record.place, error.attribute, error.expected, error.found, advice) from error
    except (fencepost.IoError, fencepost.WriterError):
        raise  # of the new file, not of the record
    except (fencepost.Error, TypeError, ValueError, OverflowError) as error:
        raise SourceError.at(record.path, record.place, error) from error


def _learn(records: Iterable[Record], optional: list[str], source: Path) -> fencepost.Schema:
    """The schema that the first value of each name says."""
    merged: dict[str, Any] = {}
    record = None
    for record in records:
        for name, value in record.values.items():
            # In the order in which names come, whatever they stand for.
            if merged.setdefault(name) is None:
                merged[name] = value
        if all(merged.get(name) is not None for name in optional):
            break
    missing = [name for name in optional if merged.get(name) is None]
    if record is None or missing:
        found = f"none with {', '.join(missing)}" if record else "none"
        raise SourceError(source, "", "", "a record that has each optional attribute", found, "leave the name out, or pass schema=")
    with tempfile.TemporaryDirectory() as folder:
        writer = fencepost.Writer(os.path.join(folder, "first"))
        try:
            _append(writer, Record(record.path, record.place, merged))
            known = writer.schema
        finally:
            writer.abort()
    assert known is not None
    return _optional(known, optional, source)


def _optional(schema: fencepost.Schema, names: list[str], source: Path) -> fencepost.Schema:
    for name in names:
        if name not in schema:
            had = ", ".join(item.name for item in schema.attributes)
            raise SourceError(source, "", name, f"one of the names {had}", "an optional attribute of another name")
    return fencepost.Schema(
        [
            fencepost.Attribute(
                item.name, item.dtype, item.shape, cat_dim=item.cat_dim, increment=cast(Any, item.increment),
                optional=item.optional or item.name in names, hidden=item.hidden,
            )
            for item in schema.attributes
        ],
        schema.axes,
    )  # fmt: skip
