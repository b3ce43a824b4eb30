"""From records to BENCHMARKS.md and its plots: `python -m peers.report`. Needs numpy alone.

| file | duty |
| --- | --- |
| `read` | the records of a folder, by set and peer |
| `table` | tables of cells |
| `losses` | where ours is slower or larger, and why |
| `advice` | what to pick instead, when |
| `targets` | what was asked for, and what was measured |
| `plots` | pictures as SVG |
| `page` | all of it in one page |
"""
