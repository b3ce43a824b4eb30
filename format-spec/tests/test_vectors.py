"""The reference reader reads every golden file to the listed values and refuses every hostile file as listed."""

import json
import pathlib

import pytest
from conftest import SPEC
from reference_reader import FenceError, Reader, contents

GOLDEN = sorted((SPEC / "vectors" / "golden").glob("*.fence"))
HOSTILE = sorted((SPEC / "vectors" / "hostile").glob("*.fence"))
EXPECTED = json.loads((SPEC / "vectors" / "hostile" / "EXPECTED.json").read_text(encoding="utf-8"))


def named(path: pathlib.Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", GOLDEN, ids=named)
def test_golden(path):
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    with Reader(path) as reader:
        assert contents(reader) == expected
        # Equality of 0.0 and -0.0, and of 1 and 1.0, is not enough for metadata.
        assert json.dumps(reader.metadata, sort_keys=True) == json.dumps(expected["metadata"], sort_keys=True)
        assert reader.verify() == []


def test_golden_files_are_small():
    large = {path.stem for path in GOLDEN if path.stat().st_size > 20 * 1024}
    assert large == {"blocks"}, "more than one block is what that one is for; the others should be small"


def test_shared_tables_are_one_section():
    with Reader(SPEC / "vectors" / "golden" / "shared_offsets.fence") as reader:
        a, b, c = (axis.table.section for axis in reader.axes)
        own = {attribute.name: attribute for attribute in reader.attributes}
        assert a == b != c
        assert own["own"].own.section == own["text"].bytes.section


def test_statistics_have_the_form_of_the_specification():
    with Reader(SPEC / "vectors" / "golden" / "one_sample.fence") as reader:
        section = reader.sections[reader.statistics_section]
        statistics = json.loads(reader._read(section.offset, section.length))
    assert set(statistics) == {"attributes", "axes"}
    assert statistics["attributes"]["x"] == {"count": "9", "nan": "0", "min": "0.0", "max": "4.0", "mean": "2.0"}
    assert statistics["attributes"]["smiles"] == {"bytes": {"count": "1", "min": "3", "max": "3", "mean": "3.0"}}
    assert statistics["axes"]["edges"] == {"count": "1", "min": "4", "max": "4", "mean": "4.0"}


def test_every_hostile_file_is_listed_and_every_listed_file_is_there():
    assert {path.name for path in HOSTILE} == set(EXPECTED)
    assert {path.with_suffix(".fence").name for path in (SPEC / "vectors" / "golden").glob("*.json")} == {
        path.name for path in GOLDEN
    }


@pytest.mark.parametrize("path", HOSTILE, ids=named)
def test_hostile(path):
    expected = EXPECTED[path.name]
    code, stage, victim = expected["code"], expected["stage"], expected.get("attribute")
    assert (victim is not None) == (stage == "access")
    try:
        reader = Reader(path)
    except FenceError as error:
        assert (stage, error.code) == ("open", code), error
        return
    assert stage != "open", "it was opened"
    with reader:
        found = set()
        for name in [attribute.name for attribute in reader.attributes] + list(reader.refused):
            for i in range(reader.samples):
                try:
                    reader.value(name, i)
                except FenceError as error:
                    found.add((name, error.code))
        assert found == ({(victim, code)} if stage == "access" else set())
        codes = {fault.code for fault in reader.verify()}
        assert codes == (set() if code == "attribute-refused" else {code})
