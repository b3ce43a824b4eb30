"""`.pt` files of PyTorch Geometric: what `InMemoryDataset` keeps in its folder `processed`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Unpack

import fencepost

from ._errors import PickleError, SourceError, existing
from ._graphs import write_graphs
from ._library import library
from ._write import Path, WriteOptions


def from_pt(
    path: Path, out: Path, *, allow_pickle: bool = False, data_cls: Any = None, **options: Unpack[WriteOptions]
) -> fencepost.Dataset:
    """Writes the samples of a `.pt` file to a file, which `fencepost.pyg.open` reads, and opens it.

    The file is what `InMemoryDataset.save` writes, `(data, slices, class)`, what older code saved, `(data, slices)`, or a list of
    samples. It is read with torch's `weights_only`; its tensors are mapped, not loaded, if it is an archive of torch 1.6 or later.

    Args:
        path: the file.
        out: the file to write.
        allow_pickle: whether objects other than tensors and PyG's own may be read, which runs whatever code they name.
        data_cls: the class of the samples, where the file does not say it (`Data`).
        options: see `WriteOptions`; without `schema` and `optional`, for the first sample says what there is.

    Raises:
        PickleError: there are objects that only pickle can read, and `allow_pickle` is not set.
        SourceError: the file is damaged or holds something else.
    """
    library("fencepost.pyg", "torch torch_geometric", "from_pt")
    legacy = library("fencepost.pyg.legacy", "torch torch_geometric", "from_pt")
    name = existing(path, "a file of torch.save")
    try:
        found = legacy.read(name, allow_pickle)
        samples = found if isinstance(found, list) else legacy.Collated(*legacy.unpack(found, name, data_cls or legacy.Data))
        total = len(samples)
    except legacy.PickleError as error:
        raise PickleError(name, "", f"objects that need pickle ({error.named or 'of no known kind'})") from error
    except fencepost.Error as error:
        raise SourceError.at(name, "", error) from error
    except Exception as error:  # tensors and tables of a set that fit each other badly fail in many ways
        raise _misfit(name, "", error) from error
    return write_graphs(
        _records(name, samples), out, options, source=name, total=total, allow_pickle=allow_pickle, function="from_pt"
    )


def _records(path: str, samples: Any) -> Iterator[tuple[str, str, Any]]:
    index, each = 0, iter(samples)
    while True:
        try:
            data = next(each)
        except StopIteration:
            return
        except Exception as error:
            raise _misfit(path, f"sample {index}", error) from error
        yield path, f"sample {index}", data
        index += 1


def _misfit(path: str, place: str, error: Exception) -> SourceError:
    found = f"some that PyG does not take apart ({type(error).__name__}: {error})"
    return SourceError(path, place, "", "data and slices that fit each other", found)
