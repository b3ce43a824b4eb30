import pathlib
import sys

SPEC = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SPEC))
sys.path.insert(0, str(SPEC / "tests"))
