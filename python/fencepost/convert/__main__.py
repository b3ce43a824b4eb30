"""The command line: `python -m fencepost.convert lmdb SRC OUT.fence`, `python -m fencepost.convert to-parquet FILE.fence OUT`.

Data goes to stdout, talk to stderr. Exit code 0: fine; 1: the source is bad; 2: it could not run, as with `fencepost`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import fencepost
from fencepost import convert

IMPORTS: dict[str, tuple[Callable[..., Any], str]] = {
    "pt": (convert.from_pt, "a .pt file of PyTorch Geometric"),
    "lmdb": (convert.from_lmdb, "an LMDB database, or a folder of them"),
    "ase": (convert.from_ase, "a database of ASE"),
    "atompack": (convert.from_atompack, "a database of AtomPack"),
    "hdf5": (convert.from_hdf5, "arrays with offsets in HDF5"),
    "arrow": (convert.from_arrow, "a file of Arrow's IPC format"),
    "parquet": (convert.from_parquet, "a Parquet file, or a folder of them"),
    "huggingface": (convert.from_huggingface, "a folder that save_to_disk wrote"),
}
EXPORTS: dict[str, tuple[Callable[..., Any], str]] = {
    "to-arrow": (convert.to_ipc, "a file of Arrow's IPC format"),
    "to-parquet": (convert.to_parquet, "a Parquet file"),
}


def _pair(text: str) -> tuple[str, str]:
    name, equals, axis = text.partition("=")
    if not (name and equals and axis):
        raise argparse.ArgumentTypeError(f"expected NAME=AXIS, found {text}")
    return name, axis


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    top = argparse.ArgumentParser(prog="python -m fencepost.convert", description="Other formats to .fence files, and back.")
    commands = top.add_subparsers(dest="format", required=True, metavar="FORMAT")
    for name, (_, what) in IMPORTS.items():
        command = commands.add_parser(name, help=f"import {what}", description=f"Import {what}.")
        command.add_argument("source", metavar="SRC", help=what)
        command.add_argument("out", metavar="OUT", help="the .fence file to write")
        command.add_argument("--narrow", action="store_true", help="store the smallest types that hold every value exactly")
        if name in ("pt", "lmdb"):
            command.add_argument("--allow-pickle", action="store_true", help="read pickles, which run whatever code they name")
        if name == "lmdb":
            command.add_argument("--decode", default="auto", help="what records are: pickle, torch, npz, npy, json or bytes")
            command.add_argument("--key", metavar="ATTRIBUTE", help="an attribute for the key of each record")
        if name == "ase":
            command.add_argument("--select", dest="selection", default="", metavar="QUERY", help="which rows, in ASE's words")
        if name == "hdf5":
            command.add_argument("--group", default="/", help="where the arrays are")
            command.add_argument("--along", type=_pair, action="append", default=[], metavar="ARRAY=AXIS", help="cut this array so")
            command.add_argument("--table", type=_pair, action="append", default=[], metavar="AXIS=ARRAY", help="the table of an axis")
            command.add_argument("--per-sample", action="append", default=[], metavar="ARRAY", help="row i is sample i's")
        if name not in ("pt", "lmdb"):
            command.add_argument("--skip", action="append", default=[], metavar="NAME", help="leave this out")
        if name in ("lmdb", "arrow", "parquet", "huggingface"):
            command.add_argument("--optional", action="append", default=[], metavar="NAME", help="records may lack this")
    for name, (_, what) in EXPORTS.items():
        command = commands.add_parser(name, help=f"export {what}", description=f"Export {what}.")
        command.add_argument("source", metavar="FILE", help="the .fence file")
        command.add_argument("out", metavar="OUT", help=f"{what} to write")
    for command in commands.choices.values():
        command.add_argument("--no-clobber", dest="overwrite", action="store_false", help="do not replace a file that exists")
    return top


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; the exit code."""
    chosen = vars(parser().parse_args(arguments))
    function, _ = (IMPORTS | EXPORTS)[chosen.pop("format")]
    source, out = chosen.pop("source"), chosen.pop("out")
    for name, keyword in (("along", "along"), ("table", "tables")):
        if name in chosen:
            chosen[keyword] = dict(chosen.pop(name))
    try:
        made = function(source, out, progress=sys.stderr.isatty(), **chosen)
    except (fencepost.ConvertError, fencepost.FormatError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (fencepost.Error, ImportError, OSError, TypeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{out}: {len(made)} samples" if made is not None else out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
