"""How datasets look in a terminal and in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._fencepost import Dataset


def number(text: str) -> int | float | str:
    """A statistic as a number; the file has them as text, so that 64-bit integers and NaN survive."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def size(count: float) -> str:
    """Bytes in decimal units."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _rows(dataset: Dataset) -> list[tuple[str, str, str, str]]:
    schema, rows = dataset.schema, []
    for name in dataset.attributes:
        attribute = schema[name]
        shape = ", ".join(str(extent) for extent in attribute.shape)
        notes = [f"stored as {attribute.stored}"] if attribute.stored != attribute.dtype else []
        if attribute.optional:
            notes.append("optional")
        if attribute.increment is not None:
            notes.append(f"index into {attribute.increment}" if isinstance(attribute.increment, str) else "incremented")
        rows.append((name, f"{attribute.dtype}[{shape}]", size(dataset.attribute_nbytes(name)), ", ".join(notes)))
    return rows


def _head(dataset: Dataset) -> str:
    view = "" if dataset.indices is None else " (a view)"
    return f"{len(dataset)} samples{view}, {size(dataset.nbytes)}, {dataset.backing}"


def text(dataset: Dataset) -> str:
    rows = _rows(dataset)
    lines = [f"Dataset({str(dataset.path)!r}: {_head(dataset)})"]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        cells = [row[0].ljust(widths[0]), row[1].ljust(widths[1]), row[2].rjust(widths[2]), row[3]]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def html(dataset: Dataset) -> str:
    cells = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row) + "</tr>" for row in _rows(dataset)
    )
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in ("attribute", "dtype and shape", "size", ""))
    title = f"<b>Dataset</b> <code>{escape(str(dataset.path))}</code><br>{escape(_head(dataset))}"
    return f"<div>{title}<table><thead><tr>{head}</tr></thead><tbody>{cells}</tbody></table></div>"
