"""Measures fencepost against other ways of storing and serving many samples of variable size.

    python -m peers --peer lmdb --set qm9        one peer on one set (benches/peers/run.sh sets the environment up)

| file | duty |
| --- | --- |
| `sets` | the samples: made from a seed, by a program, or read from the repository |
| `system` | what every system must do, and what it need not say itself |
| `systems/` | one file a system, in the way that its own documentation recommends |
| `packed` | a sample as one record of bytes, for the stores that keep bytes |
| `check` | what comes out equals what went in |
| `workloads` | what is timed, in the process of one system |
| `child` | that process: asked by the parent, one workload at a time |
| `writing` | the process that writes a whole set, and checks what it wrote |
| `limit` | control groups with a memory limit |
| `memory` | what a process uses, from the kernel's figures |
| `machine` | facts of the machine, versions |
| `settings` | rounds and seconds of the short and of the full form |
| `pair` | one peer and fencepost in alternated rounds: one record |
| `schedule` | which pairs, in which order, and how long they take |
| `statistics` | medians, ratios, intervals |
| `report/` | records to BENCHMARKS.md and its plots |
"""
