"""What SPEC.md says and the files and code beside it must not drift apart."""

import json
import re

import example
import reference_reader
from conftest import SPEC

TEXT = (SPEC / "SPEC.md").read_text(encoding="utf-8")


def section(title):
    return re.search(rf"^## \d+ {title}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL).group(1)


def test_the_worked_example_is_the_golden_file():
    shown = TEXT.partition(example.START)[2].partition(example.END)[0]
    assert shown == example.example(), "run: python format-spec/tests/example.py --write"


def test_the_codes_are_those_of_the_library_and_each_has_a_hostile_file():
    listed = set(re.findall(r"^\| `([a-z0-9-]+)` \|", section("Error codes"), re.MULTILINE))
    rust = (SPEC.parent / "src" / "error.rs").read_text(encoding="utf-8")
    named = set(re.findall(r'Self::\w+ \{ \.\. \} => "([a-z0-9-]+)"', rust))
    assert named | {"attribute-refused"} == listed
    expected = json.loads((SPEC / "vectors" / "hostile" / "EXPECTED.json").read_text(encoding="utf-8"))
    assert {entry["code"] for entry in expected.values()} == listed


def test_the_legal_pairs_are_those_of_the_reader():
    rows = re.findall(r"^\| `(\w+)` \| ((?:`\w+` ?)+)\|", section("Narrow storage"), re.MULTILINE)
    assert rows.pop(0)[0] == "dtype"
    assert {dtype: tuple(re.findall(r"\w+", stored)) for dtype, stored in rows} == reference_reader.NARROW


def test_links_lead_somewhere():
    titles = re.findall(r"^#{2,3} (.+)$", TEXT, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    for target in re.findall(r"\]\(#([^)]+)\)", TEXT):
        assert target in anchors
    for target in re.findall(r"\]\(([^#)][^)]*)\)", TEXT):
        assert (SPEC / target).exists()


def test_sections_are_numbered_in_order():
    numbers = [int(number) for number in re.findall(r"^## (\d+) ", TEXT, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
