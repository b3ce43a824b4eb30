"""The files of format-spec/vectors through Python: golden ones agree with the reference reader, hostile ones end in the
documented exception or report, in a process that no signal ends."""

from __future__ import annotations

import json
import sys

import pytest
from conftest import BACKINGS, ROOT, run

import fencepost

VECTORS = ROOT / "format-spec" / "vectors"
GOLDEN = sorted((VECTORS / "golden").glob("*.fence"))
sys.path.insert(0, str(ROOT / "format-spec"))


def length(range_of_axis) -> int:
    start, end = range_of_axis
    return end - start


def flat(value) -> list[bytes]:
    if isinstance(value, list):
        return [text for item in value for text in flat(item)]
    return [value.encode() if isinstance(value, str) else value]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
@pytest.mark.parametrize("backing", BACKINGS)
def test_golden_files_agree_with_the_reference_reader(path, backing):
    from reference_reader import Reader

    dataset = fencepost.open(path, backing)
    with Reader(path) as reader:
        assert dataset.verify().ok and dataset.metadata == reader.metadata
        assert len(dataset) == reader.samples
        for index in range(len(dataset)):
            expected = reader.sample(index)
            if path.stem == "wide_offsets":
                # Extents of 2^40 beside one of 0: legal, and no array of numpy.
                with pytest.raises(fencepost.UnsupportedError, match="no elements"):
                    dataset[index]
                shapes = {name: place[2] for name, place in dataset.locate(index).items()}
                assert shapes == {name: value.shape for name, value in expected.items() if name in shapes}
                continue
            found = dataset[index]
            assert set(found) == {attribute.name for attribute in reader.attributes if not attribute.hidden}
            assert dataset.axes_of(index) == {axis.name: length(reader.axis_range(axis.name, index)) for axis in reader.axes}
            for name, value in found.items():
                wanted = expected[name]
                if wanted is None:
                    assert value is None
                elif isinstance(wanted.data, list):
                    assert flat(value) == wanted.data
                else:
                    assert (value.shape, value.tobytes()) == (wanted.shape, wanted.data), (index, name)


HOSTILE = """
import json, sys
import fencepost

expected = json.loads(open(sys.argv[1] + "/EXPECTED.json").read())
checked = 0
def code(error):
    if isinstance(error, fencepost.UnreadableError):
        return "attribute-refused"
    assert isinstance(error, fencepost.Error), repr(error)
    return error.code

for name, entry in expected.items():
    for backing in ("mapped", "positional", "resident"):
        print(name, backing, flush=True)
        try:
            dataset = fencepost.open(f"{sys.argv[1]}/{name}", backing)
        except fencepost.FormatError as error:
            assert (entry["stage"], entry["code"]) == ("open", error.code), (name, error)
            assert name in str(error)
            checked += 1
            continue
        assert entry["stage"] != "open", (name, "was opened")
        repr(dataset), dataset._repr_html_(), dataset.stats, dataset.memory()
        faults = {}
        for attribute in [*dataset.attributes, *dataset.refused_attributes]:
            def calls(view):
                yield from (lambda i=i: view[i] for i in range(len(view)))
                yield from (lambda i=i: view.read(i) for i in range(len(view)))
                yield lambda: [view.locate(i) for i in range(len(view))]
                yield lambda: view[attribute]
            try:
                view = dataset.project([attribute])
            except fencepost.Error as error:
                faults.setdefault(attribute, set()).add(code(error))
                continue
            for call in calls(view):
                try:
                    call()
                except fencepost.FormatError as error:
                    faults.setdefault(attribute, set()).add(error.code)
                except fencepost.UnsupportedError:
                    pass  # a whole tensor that this attribute does not have
        # Batches read the tables of all axes: whatever they find, it is an exception.
        for attempt in (lambda: dataset.batch(range(len(dataset))), lambda: list(fencepost.Loader(dataset, 2))):
            try:
                attempt()
            except fencepost.Error:
                pass
        report = dataset.verify(threads=1)
        codes = {problem.code for problem in report.problems} | ({"checksum"} if report.bad_blocks else set())
        if entry["stage"] == "access":
            assert faults == {entry["attribute"]: {entry["code"]}}, (name, backing, faults)
            if entry["code"] == "attribute-refused":
                assert report.ok
                checked += 1
                continue
        else:
            assert faults == {}, (name, backing, faults)
        assert codes == {entry["code"]} and not report.ok, (name, backing, codes)
        checked += 1
print("checked", checked)
"""


def test_hostile_files_give_exceptions_and_reports_and_never_a_signal():
    folder = VECTORS / "hostile"
    count = len(json.loads((folder / "EXPECTED.json").read_text()))
    result = run(HOSTILE, folder, timeout=300)
    lines = result.stdout.splitlines()
    assert result.returncode == 0, (lines[-1:], result.stderr[-3000:])
    assert lines[-1] == f"checked {3 * count}" and count > 300


LAZY = """
import json, sys
import fencepost

expected = json.loads(open(sys.argv[1] + "/EXPECTED.json").read())
refused = {}
for name, entry in expected.items():
    for backing in ("mapped", "positional", "resident"):
        print(name, backing, flush=True)
        try:
            dataset = fencepost.open(f"{sys.argv[1]}/{name}", backing, verify="lazy")
        except fencepost.FormatError as error:
            # What is refused in any case is refused for the same reason.
            assert entry["stage"] != "open" or error.code == entry["code"], (name, error)
            refused.setdefault(name, []).append("open")
            continue
        assert entry["stage"] != "open", (name, "was opened")
        codes = set()
        def touch(call):
            try:
                call()
            except fencepost.FormatError as error:
                codes.add(error.code)
            except fencepost.Error:
                pass
        for attribute in dataset.attributes:
            touch(lambda: dataset[attribute])
        for index in range(len(dataset)):
            for call in (dataset.__getitem__, dataset.read, dataset.axes_of, dataset.locate):
                touch(lambda: call(index))
        touch(lambda: dataset.batch(range(len(dataset))))
        touch(lambda: list(fencepost.Loader(dataset, 2)))
        # Checksums of these files fit their lies, but where the lie is a checksum or a bit.
        assert ("checksum" in codes) == (name in ("data_flipped_bit.fence", "crc_table_entry.fence")), (name, backing, codes)
        if codes:
            refused.setdefault(name, []).append("touch")
print(json.dumps(refused))
"""


def test_hostile_files_that_are_verified_lazily():
    folder = VECTORS / "hostile"
    expected = json.loads((folder / "EXPECTED.json").read_text())
    result = run(LAZY, folder, timeout=300)
    lines = result.stdout.splitlines()
    assert result.returncode == 0, (lines[-1:], result.stderr[-3000:])
    refused = json.loads(lines[-1])
    for name, entry in expected.items():
        if entry["stage"] == "open":
            assert refused[name] == ["open"] * 3
        elif entry["stage"] == "access" and entry["code"] != "attribute-refused":
            assert refused[name] == ["touch"] * 3, name
    assert refused["data_flipped_bit.fence"] == refused["crc_table_entry.fence"] == ["touch"] * 3
    assert refused["crc_of_table.fence"] == ["open"] * 3
