"""How long is measured: the short form of `make bench`, the full form of `make bench-full`."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Settings:
    name: str
    #: Rounds of the headline cells, and of the others.
    headline: int
    rounds: int
    #: Seconds of a round of gets or batches, of an epoch, of opening, of cold gets, and of reading for the memory cell.
    get: float
    epoch: float
    open: float
    cold: float
    touch: float
    #: Workers of the second epoch cell; cells that are left out.
    workers: int = 2
    leaves_out: tuple[str, ...] = ()

    def record(self) -> dict[str, object]:
        return asdict(self)


FULL = Settings("full", headline=5, rounds=3, get=0.2, epoch=0.8, open=0.1, cold=0.5, touch=1.0)
SHORT = Settings("short", headline=2, rounds=2, get=0.1, epoch=0.4, open=0.1, cold=0.3, touch=0.5, leaves_out=("epoch2", "cold", "limited", "memory", "write"))
