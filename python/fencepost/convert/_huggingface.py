"""Hugging Face datasets, both ways. Their tables are Arrow's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Unpack

import fencepost

from ._arrow_in import ROWS, write_batches
from ._arrow_out import to_arrow
from ._errors import SourceError
from ._layout import KEY
from ._library import library
from ._write import Path, WriteOptions

#: What the description of a data set begins with that has a layout behind it.
NOTE = "Written by fencepost.convert.to_huggingface: "


def from_huggingface(dataset: Any, out: Path, *, skip: Sequence[str] = (), **options: Unpack[WriteOptions]) -> fencepost.Dataset:
    """Writes the rows of a `datasets.Dataset` or `IterableDataset` to a file, and opens it.

    Columns become attributes as in `from_arrow`. Its order, selection and filters count; its format does not.

    Args:
        dataset: one split, or the folder that `save_to_disk` wrote.
        out: the file.
        skip: columns to leave out.
        options: see `WriteOptions`.
    """
    datasets = library("datasets", "datasets", "from_huggingface")
    pyarrow = library("pyarrow", "pyarrow", "from_huggingface")
    source = "dataset"
    if isinstance(dataset, (str, os.PathLike)):
        source = os.fspath(dataset)
        try:
            dataset = datasets.load_from_disk(source)
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            expected = "a folder that save_to_disk wrote"
            raise SourceError(source, "", "", expected, f"one that does not open ({error})") from error
    if isinstance(dataset, dict):
        raise SourceError(source, "", "", "one split", f"those named {', '.join(dataset)}", "take one: dataset[name]")
    rows = dataset.with_format("arrow")

    def batches() -> Iterator[tuple[str, Any]]:
        for table in rows.iter(batch_size=ROWS):
            for batch in table.to_batches():
                yield source, batch

    first = next((batch for _, batch in batches()), None)
    if first is None:
        raise SourceError(source, "", "", "at least one row", "none")
    note = str(getattr(dataset.info, "description", "") or "")
    noted = {KEY: note.removeprefix(NOTE).encode()} if note.startswith(NOTE) else None
    total = len(dataset) if hasattr(dataset, "__len__") else None
    return write_batches(source, first.schema.with_metadata(noted), batches, out, skip, options, total)


def to_huggingface(dataset: fencepost.Dataset | Path) -> Any:
    """The samples as a `datasets.Dataset` over the table of `to_arrow`, which says what is copied.

    The schema goes along in the data set's description, so that `from_huggingface` makes the same file again.
    """
    datasets = library("datasets", "datasets", "to_huggingface")
    table = to_arrow(dataset)
    # Metadata of the table would be dropped.
    return datasets.Dataset(table, info=datasets.DatasetInfo(description=NOTE + table.schema.metadata[KEY].decode()))
