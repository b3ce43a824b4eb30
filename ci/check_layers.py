"""Check that the modules point one way, and that unsafe code is where SAFETY.md says.

    python3 ci/check_layers.py                the repository
    python3 ci/check_layers.py --self-test    small made-up trees, each with one fault

Reads the source as text, with comments and literals taken out: `use` trees, paths that begin with `crate::`, and
`super::` chains that leave a top-level module. Names that lib.rs re-exports (`crate::Error`) count as the module they
come from. A path that cannot be told is an error, not a pass. `#[cfg(test)]` items may point anywhere: the tests of a
low layer may build their files with a high one.

Standard library only.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

# Module -> modules that it may use. ARCHITECTURE.md draws the same picture.
ARROWS: dict[str, set[str]] = {
    "error": {"format"},  # only what ONLY_NAMES says
    "aligned": set(),  # memory for bytes that are looked at as values; knows nobody
    "sync": set(),  # locks; knows nobody
    "format": {"error"},
    "storage": {"aligned", "sync", "error"},
    "plan": {"storage", "error"},  # likewise
    "writer": {"format", "storage", "aligned", "error"},
    "reader": {"format", "storage", "aligned", "sync", "error"},
    "rewrite": {"reader", "writer", "format", "storage", "error"},
    "shards": {"reader", "writer", "format", "error"},
    "overlay": {"reader", "writer", "format", "error"},
    "salvage": {"rewrite", "reader", "writer", "format", "storage", "error"},
    "batch": {"reader", "format", "aligned", "sync", "error"},
    "loader": {"batch", "reader", "sync", "error"},
    "convert": {"writer", "reader", "format", "error"},
}
# Arrows that carry one name only. The error type names dtypes in its messages, where more would make a circle of two
# modules; advice names backings, and has no business with bytes.
ONLY_NAMES: dict[tuple[str, str], set[tuple[str, ...]]] = {
    ("error", "format"): {("format", "DType"), ("format", "dtype", "DType")},
    ("plan", "storage"): {("storage", "Backing"), ("storage", "store", "Backing")},
}

# What a layer must not know, beside our own modules: first path segments, or std and one segment.
FOREIGN: dict[str, set[str]] = {
    "error": {"std::fs", "std::thread", "std::time", "std::net", "std::process", "std::env"},
    "format": {
        "std::fs", "std::thread", "std::time", "std::net", "std::process", "std::env", "std::path",
        "memmap2", "tempfile", "rustix",
    },  # fmt: skip
    "batch": {"std::fs", "std::thread", "memmap2", "tempfile", "rustix"},
}
# Crates that only one layer may touch.
# parking_lot is in no layer: see src/sync.rs.
ONLY_IN: dict[str, str] = {"memmap2": "storage", "parking_lot": "no layer"}

# The only files with the word `unsafe` in code, and why. `forbid(unsafe_code)` also refuses to *declare* an unsafe fn,
# and cannot be lifted further down, so a parent module of one of these carries `deny` and the rest `forbid`.
UNSAFE_FILES: dict[str, str] = {
    "src/storage/mapped.rs": "makes the mapping",
    "src/reader/map.rs": "declares `Dataset::map`, whose promise it hands to storage/mapped.rs",
    "cli/src/map.rs": "gives that promise for the demo's own files",
    "python/src/buffer.rs": "the buffer edge, and the mapped open of Python",
}
CHECKED_ROOTS = ("src", "cli/src", "python/src")


# --- text ------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""
      //[^\n]*
    | /\*
    | (?:b|c)?r(?P<hashes>\#*)"
    | (?:b|c)?"(?:\\.|[^"\\])*"
    | b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^\\'\n])'
    | r\#(?=[A-Za-z_])
    | [A-Za-z0-9_]+
    """,
    re.VERBOSE | re.DOTALL,
)


def code_only(text: str) -> str:
    """The text with comments and literals blanked; line numbers stay."""
    out: list[str] = []
    at = 0

    def blank(start: int, end: int) -> None:
        out.append("".join(c if c == "\n" else " " for c in text[start:end]))

    while match := _TOKEN.search(text, at):
        start, end = match.span()
        token = match.group()
        out.append(text[at:start])
        if token == "/*":
            depth = 1
            while depth:
                step = re.compile(r"/\*|\*/").search(text, end)
                if step is None:
                    end = len(text)
                    break
                depth += 1 if step.group() == "/*" else -1
                end = step.end()
            blank(start, end)
        elif match.group("hashes") is not None:
            close = text.find('"' + match.group("hashes"), end)
            end = len(text) if close < 0 else close + 1 + len(match.group("hashes"))
            blank(start, end)
        elif token.startswith("//") or token[-1] in "\"'":
            blank(start, end)
        else:
            out.append(token)
        at = end
    out.append(text[at:])
    return "".join(out)


def closing(code: str, opened: int) -> int:
    """Index behind the bracket that closes the one at `opened`."""
    depth = 0
    for i in range(opened, len(code)):
        if code[i] in "{[(":
            depth += 1
        elif code[i] in "}])":
            depth -= 1
            if depth == 0:
                return i + 1
    return len(code)


_CFG_TEST = re.compile(r"#\s*\[\s*cfg\s*\(\s*(?:test\s*\)|all\s*\(\s*test\s*,)")


def without_tests(code: str) -> str:
    """The code with `#[cfg(test)]` items blanked (an item ends at its first `;` or behind its first block)."""
    at = 0
    while match := _CFG_TEST.search(code, at):
        end = closing(code, code.index("[", match.start()))
        while end < len(code) and code[end] not in ";{":
            end = closing(code, end) if code[end] in "[(" else end + 1
        end = closing(code, end) if end < len(code) and code[end] == "{" else end + 1
        gone = code[match.start() : end]
        code = code[: match.start()] + "".join(c if c == "\n" else " " for c in gone) + code[end:]
        at = match.start()
    return code


_TEST_FILE = re.compile(r"#\s*\[\s*cfg\s*\(\s*test\s*\)\s*\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")


# --- paths -----------------------------------------------------------------------------------------------------------

_PIECE = re.compile(r"\s*(::|\{|\}|,|\*|[A-Za-z_]\w*)")
_USE = re.compile(r"\buse\s+")
_HEAD = re.compile(r"(?<![\w$])(?<![\w>]::)(\$?crate|super|std|core|[a-z_]\w*)\s*::\s*")


def expand_tree(code: str, at: int, prefix: tuple[str, ...]) -> tuple[list[tuple[str, ...]], int]:
    """All paths of one use tree that begins at `at`, each as a tuple of segments, and where the tree ends."""
    path = prefix
    while True:
        piece = _PIECE.match(code, at)
        if piece is None:
            return ([path] if path != prefix or path else []), at
        token = piece.group(1)
        if token == "::":
            at = piece.end()
        elif token == "{":
            found: list[tuple[str, ...]] = []
            at = piece.end()
            while True:
                piece = _PIECE.match(code, at)
                if piece is None:
                    return found, at
                if piece.group(1) == "}":
                    return found, piece.end()
                if piece.group(1) == ",":
                    at = piece.end()
                    continue
                inner, after = expand_tree(code, at, path)
                if after == at:
                    return found + inner, at
                found += inner
                at = after
        elif token in ("}", ","):
            return [path], at
        elif token == "as":
            renamed = _PIECE.match(code, piece.end())
            return [(*path, "as", renamed.group(1) if renamed else "")], renamed.end() if renamed else piece.end()
        else:
            path = (*path, token)
            at = piece.end()
            if not re.match(r"\s*::", code[at : at + 16]) and not re.match(r"\s+as\b", code[at : at + 16]):
                return [path], at


def paths(code: str) -> list[tuple[int, tuple[str, ...]]]:
    """(position, segments) of every path in the code, use trees expanded."""
    found = []
    used: list[tuple[int, int]] = []
    for match in _USE.finditer(code):
        tree, end = expand_tree(code, match.end(), ())
        used.append((match.start(), end))
        found += [(match.start(), path) for path in tree]
    for match in _HEAD.finditer(code):
        if any(start <= match.start() < end for start, end in used):
            continue
        segments = re.match(r"(?:\s*::)?(?:\s*\w+\s*::)*\s*\w*", code[match.end() :])
        rest = re.findall(r"\w+", segments.group()) if segments else []
        found.append((match.start(), (match.group(1).lstrip("$"), *rest)))
    return found


_INLINE = re.compile(r"\bmod\s+(\w+)\s*\{")


def inline_modules(code: str) -> list[tuple[int, int, str]]:
    """Start, end and name of every `mod NAME { ... }`, outer ones first."""
    return [(m.start(), closing(code, m.end() - 1), m.group(1)) for m in _INLINE.finditer(code)]


def line_of(code: str, at: int) -> int:
    return code.count("\n", 0, at) + 1


def module_path(file: Path, src: Path) -> tuple[str, ...]:
    parts = file.relative_to(src).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def absolute(path: tuple[str, ...], module: tuple[str, ...]) -> tuple[str, ...] | None:
    """Segments below `crate`, or None for a path that does not begin in our crate."""
    if path[0] == "crate":
        return path[1:]
    if path[0] in ("super", "self"):
        here = list(module)
        rest = list(path)
        while rest and rest[0] in ("super", "self"):
            if rest.pop(0) == "super" and here:
                here.pop()
        return (*here, *rest)
    return None


def re_exports(lib: Path) -> dict[str, str]:
    """Name -> module, for what lib.rs re-exports."""
    names: dict[str, str] = {}
    for _, path in paths(code_only(lib.read_text(encoding="utf-8"))):
        path = path[1:] if path and path[0] in ("crate", "self") else path
        if len(path) < 2 or path[0] not in ARROWS:
            continue
        names[path[-1]] = path[0]
    return names


_MACRO = re.compile(r"#\s*\[\s*macro_export[^\]]*\]\s*(?:#\s*\[[^\]]*\]\s*)*macro_rules!\s*(\w+)")


def exported_macros(src: Path) -> dict[str, str]:
    """Name -> module, for `#[macro_export]`: such a macro is named at the crate root wherever it stands."""
    names: dict[str, str] = {}
    for file in src.rglob("*.rs"):
        if module := module_path(file, src):
            code = code_only(file.read_text(encoding="utf-8"))
            names |= {name: module[0] for name in _MACRO.findall(code)}
    return names


# --- the checks ------------------------------------------------------------------------------------------------------


def check_arrows(root: Path) -> list[str]:
    src = root / "src"
    lib = src / "lib.rs"
    exported = exported_macros(src) | re_exports(lib)
    faults: list[str] = []
    for file in sorted(src.rglob("*.rs")):
        module = module_path(file, src)
        name = file.relative_to(root).as_posix()
        if not module:
            continue  # lib.rs names every module
        top = module[0]
        if top not in ARROWS:
            faults.append(f"{name}: module `{top}` has no entry in ARROWS of ci/check_layers.py: say what it may use")
            continue
        if is_test_file(file):
            continue
        code = without_tests(code_only(file.read_text(encoding="utf-8")))
        if re.search(r"extern\s+crate\s+self\b", code):
            faults.append(f"{name}: renames the crate, which hides its arrows")
        for match in re.finditer(r"#\s*!?\s*\[\s*path\s*=", code):
            faults.append(f"{name}:{line_of(code, match.start())}: `#[path]` hides which module this is")
        inline = inline_modules(code)
        for at, path in paths(code):
            where = f"{name}:{line_of(code, at)}"
            faults += foreign_faults(where, top, path)
            here = (*module, *(inner for start, end, inner in inline if start <= at < end))
            target = absolute(path, here)
            if target is None:
                continue
            if not target or target[0] in ("*", "as", "self"):
                faults.append(f"{where}: takes the whole crate root, which hides its arrows: name the modules")
                continue
            to = target[0] if target[0] in ARROWS else exported.get(target[0])
            if to is None:
                faults.append(
                    f"{where}: cannot tell which module `crate::{'::'.join(target)}` comes from: name its module in the path"
                )
            elif to == top:
                continue
            elif to not in ARROWS[top]:
                may = ", ".join(sorted(ARROWS[top])) or "nothing"
                faults.append(f"{where}: backward arrow {top} -> {to} (`{'::'.join(path)}`): {top} may use {may}")
            elif names := ONLY_NAMES.get((top, to)):
                full = target if target[0] in ARROWS else (to, *target)
                if tuple(p for p in full if p != "self") not in names:
                    only = "::".join(min(names, key=len))
                    faults.append(f"{where}: {top} may name {only} only, not `{'::'.join(full)}`")
    return faults


def is_test_file(file: Path) -> bool:
    """Declared by its parent as `#[cfg(test)] mod NAME;`, itself or a folder above it."""
    for path in (file, *file.parents):
        stem = path.stem if path.stem != "mod" else path.parent.name
        folder = path.parent if path.stem != "mod" else path.parent.parent
        for parent in (folder / "mod.rs", folder / "lib.rs", folder.with_suffix(".rs")):
            if parent.is_file() and parent != file:
                code = code_only(parent.read_text(encoding="utf-8"))
                if stem in _TEST_FILE.findall(code):
                    return True
        if (path / "lib.rs").is_file():
            return False
    return False


def foreign_faults(where: str, top: str, path: tuple[str, ...]) -> list[str]:
    keys = {path[0]}
    if path[0] in ("std", "core") and len(path) > 1:
        keys.add(f"std::{path[1]}")
    found = [f"{where}: {top} must not know `{key}`" for key in sorted(keys & FOREIGN.get(top, set()))]
    if path[0] in ONLY_IN and ONLY_IN[path[0]] != top:
        found.append(f"{where}: only {ONLY_IN[path[0]]} may use `{path[0]}`")
    return found


def check_unsafe(root: Path) -> list[str]:
    faults: list[str] = []
    safety = root / "SAFETY.md"
    listed = safety.read_text(encoding="utf-8") if safety.is_file() else ""
    faults += [
        f"SAFETY.md: does not list {name}, which holds unsafe code"
        for name in UNSAFE_FILES
        if (root / name).is_file() and f"`{name}`" not in listed
    ]
    for base in CHECKED_ROOTS:
        for file in sorted((root / base).rglob("*.rs")) if (root / base).is_dir() else ():
            name = file.relative_to(root).as_posix()
            code = code_only(file.read_text(encoding="utf-8"))
            if name in UNSAFE_FILES:
                continue
            for match in re.finditer(r"\bunsafe\b(?!_)", code):
                line = line_of(code, match.start())
                faults.append(f"{name}:{line}: `unsafe` outside the files that SAFETY.md lists")
            below = any(holds(file, root / other) for other in UNSAFE_FILES if (root / other).is_file())
            level = "deny" if below else "forbid"
            # Inner attributes come first, behind the doc comment (which code_only has blanked).
            head = re.match(r"(?:\s*#!\s*\[[^\]]*\])*", code)
            if head is None or not re.search(rf"#!\s*\[\s*{level}\s*\(\s*unsafe_code\s*\)\s*\]", head.group()):
                why = " (a module below it holds unsafe code, which `forbid` could not be lifted for)" if below else ""
                faults.append(f"{name}: must start with `#![{level}(unsafe_code)]` after its doc comment{why}")
    return faults


def holds(file: Path, other: Path) -> bool:
    """Whether `other` is a module inside the module of `file`."""
    if file.name in ("lib.rs", "main.rs", "mod.rs"):
        return file.parent in other.parents
    return file.with_suffix("") in other.parents


def check_members(root: Path) -> list[str]:
    """The members depend on the library, never the other way, and share no source with it."""
    faults: list[str] = []
    manifest = (root / "Cargo.toml").read_text(encoding="utf-8") if (root / "Cargo.toml").is_file() else ""
    for line, text in enumerate(manifest.splitlines(), 1):
        if re.match(r"\s*(?:\[.*dependencies\.)?fencepost-(?:cli|python)\b", text):
            faults.append(f"Cargo.toml:{line}: the library must not depend on what is built on it")
    for base in CHECKED_ROOTS[1:]:
        for file in sorted((root / base).rglob("*.rs")) if (root / base).is_dir() else ():
            text = file.read_text(encoding="utf-8")
            for match in re.finditer(r'(?:path\s*=|include!\s*\()\s*"[^"]*\.\./[^"]*\.rs"', text):
                line = line_of(text, match.start())
                faults.append(f"{file.relative_to(root).as_posix()}:{line}: takes source of another crate: use the library")
    return faults


def check(root: Path) -> list[str]:
    if not (root / "src" / "lib.rs").is_file():
        return [f"{root}: no src/lib.rs here"]
    return check_arrows(root) + check_unsafe(root) + check_members(root)


# --- self-test -------------------------------------------------------------------------------------------------------

FORBID = "#![forbid(unsafe_code)]\n"
GOOD_TREE = {
    "Cargo.toml": '[package]\nname = "fencepost"\n[workspace.dependencies]\nfencepost = { path = "." }\n',
    "SAFETY.md": "`src/storage/mapped.rs`\n",
    "src/lib.rs": "//! Doc.\n#![deny(unsafe_code)]\nmod error;\nmod format;\npub use error::{Error, Result};\n"
    "pub use crate::format::dtype::DType;\npub use reader::Dataset as Data;\n",
    "src/error.rs": "//! Doc that names [`crate::reader::Dataset`].\n" + FORBID + "use crate::format::DType;\n",
    "src/format/mod.rs": FORBID + "use std::{io, fmt};\nuse crate::{error::{self, Error}, Result};\nmod dtype;\n"
    "#[macro_export]\n/// Doc.\n#[doc(hidden)]\nmacro_rules! dims { () => { $crate::dims!(1) } }\n"
    'const S: &str = "crate::reader \\" unsafe"; const C: char = \'"\'; // crate::writer unsafe\n'
    'const R: &str = r#"crate::writer " unsafe"#; /* a /* b */ crate::loader */ fn f<\'a>(x: &\'a str) {}\n',
    "src/format/dtype.rs": FORBID + "use super::S;\nuse super::super::error::Error;\nuse self::inner::X;\n"
    "#[cfg(test)]\nmod tests {\n use crate::writer::Writer; fn g() { let _ = [(); { 1 }]; }\n}\n#[cfg(test)]\nmod more;\n",
    "src/format/dtype/more.rs": FORBID + "use crate::writer::Writer;\n",
    "src/storage/mod.rs": "//! Doc.\n//!\n//! More.\n\n#![deny(unsafe_code)]\n#![allow(dead_code)]\n#[allow(unsafe_code)]\nmod mapped;\n",
    "src/storage/mapped.rs": "use memmap2::Mmap;\nuse crate::Error;\nfn f() { unsafe { g() } }\n",
    "src/writer.rs": FORBID + "mod inner { use super::X; fn f() { Vec::<u8>::std::fs() } }\nuse crate::{format, storage::publish::{self, Publish}, DType as D};\n",
    "src/reader/mod.rs": FORBID + "fn f() -> crate::Result<crate::format::DType> { crate::storage::open() }\n",
    "src/convert/mod.rs": FORBID + "use crate::{Data, writer::Writer};\n",
    "cli/src/main.rs": FORBID + "use fencepost::Dataset;\n",
}
# (what is wrong, changed files, a part of the message that must come)
BAD_TREES: list[tuple[str, dict[str, str], str]] = [
    ("format uses reader", {"src/format/header.rs": FORBID + "use crate::reader::Dataset;\n"}, "format -> reader"),
    ("inside a tree", {"src/format/header.rs": FORBID + "use crate::{error::Error,\n writer::{Writer}};\n"}, "format -> writer"),
    ("inline path", {"src/storage/mod.rs": "#![deny(unsafe_code)]\nfn f() { crate::format::g() }\n"}, "storage -> format"),
    ("by super", {"src/storage/mod.rs": "#![deny(unsafe_code)]\nuse super::format::DType;\n"}, "storage -> format"),
    ("by re-export", {"src/writer.rs": FORBID + "use crate::Data;\n"}, "writer -> reader"),
    ("in a macro", {"src/storage/mod.rs": "#![deny(unsafe_code)]\nmacro_rules! m { () => { $crate::writer::W } }\n"}, "storage -> writer"),
    ("exported macro", {"src/storage/mod.rs": "#![deny(unsafe_code)]\nfn f() { crate::dims!() }\n"}, "storage -> format"),
    ("pub use", {"src/writer.rs": FORBID + "pub(crate) use crate::reader as r;\n"}, "writer -> reader"),
    ("behind a test", {"src/format/mod.rs": FORBID + "#[cfg(test)]\nmod tests { }\nuse crate::reader::A;\n"}, "format -> reader"),
    ("glob of the root", {"src/writer.rs": FORBID + "use crate::*;\n"}, "whole crate root"),
    ("renamed crate", {"src/writer.rs": FORBID + "use crate as me;\n"}, "whole crate root"),
    ("named crate", {"src/writer.rs": FORBID + "extern crate self as me;\n"}, "renames the crate"),
    ("inline module", {"src/writer.rs": FORBID + "mod a { mod b { use super::super::super::reader::R; } }\n"}, "writer -> reader"),
    ("leading colons", {"src/format/mod.rs": FORBID + "mod dtype;\nfn f() { ::std::fs::read(1); }\n"}, "must not know `std::fs`"),
    ("unknown name", {"src/writer.rs": FORBID + "use crate::Mystery;\n"}, "cannot tell"),
    ("unknown module", {"src/extra.rs": FORBID}, "no entry in ARROWS"),
    ("error takes more", {"src/error.rs": FORBID + "use crate::format::{DType, Header};\n"}, "format::DType only"),
    ("format reads files", {"src/format/mod.rs": FORBID + "use std::{io, fs::File};\n"}, "must not know `std::fs`"),
    ("format starts threads", {"src/format/mod.rs": FORBID + "fn f() { std::thread::yield_now() }\n"}, "must not know `std::thread`"),
    ("mmap elsewhere", {"src/reader/mod.rs": FORBID + "use memmap2::Mmap;\n"}, "only storage may use"),
    ("path attribute", {"src/writer.rs": FORBID + '#[path = "reader/mod.rs"]\nmod r;\n'}, "hides which module"),
    ("unsafe elsewhere", {"src/reader/mod.rs": FORBID + "fn f() { unsafe { g() } }\n"}, "`unsafe` outside"),
    ("unsafe in a test", {"src/reader/mod.rs": FORBID + "#[cfg(test)]\nmod t { fn f() { unsafe { g() } } }\n"}, "`unsafe` outside"),
    ("no forbid", {"src/reader/mod.rs": "//! Doc.\nuse crate::Error;\n"}, "must start with `#![forbid"),
    ("forbid too late", {"src/reader/mod.rs": "mod a { #![forbid(unsafe_code)] }\n"}, "must start with `#![forbid"),
    ("deny is not enough", {"src/reader/mod.rs": "#![deny(unsafe_code)]\n"}, "must start with `#![forbid"),
    ("not in SAFETY.md", {"SAFETY.md": "nothing\n"}, "does not list src/storage/mapped.rs"),
    ("cli takes source", {"cli/src/main.rs": FORBID + '#[path = "../../src/error.rs"]\nmod e;\n'}, "source of another crate"),
    ("lib on cli", {"Cargo.toml": '[dependencies]\nfencepost-cli = "0.1"\n'}, "must not depend"),
]


def self_test() -> int:
    def run(tree: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in tree.items():
                file = Path(folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            return check(Path(folder))

    wrong = [f"the good tree: {fault}" for fault in run(GOOD_TREE)]
    for what, change, expected in BAD_TREES:
        faults = run(GOOD_TREE | change)
        if not any(expected in fault for fault in faults):
            wrong.append(f"{what}: expected {expected!r}, got {faults or 'no fault'}")
        elif len(faults) > 1:
            wrong.append(f"{what}: one fault, but {len(faults)} messages: {faults}")
    for line in wrong:
        print(f"check_layers self-test: {line}", file=sys.stderr)
    print(f"check_layers self-test: {len(BAD_TREES) + 1} trees, {len(wrong)} wrong")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="check the modules' arrows and the places of unsafe code")
    parser.add_argument("--self-test", action="store_true", help="try the checks on made-up trees")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the repository")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    faults = check(arguments.root)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"check_layers: {len(faults)} faults" if faults else "check_layers: arrows and unsafe code as documented")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
