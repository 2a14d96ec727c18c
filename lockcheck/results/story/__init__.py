"""A judgement in plain words, for the terminal, the report and verdict.json alike.

Pure functions: history and findings in, plain text out, without markup. Whatever comes from a
history passes through `plain`, so a key full of control characters spoils no terminal and no page.

`narrative`  all of it, made once
`incidents`  findings that are told together; `grouping` finds out which belong together
`codes`      what is said of each kind of finding; `notes`, what the numbers do not say
`verdict`    the headline; `doubts`, what is told beside it
`titles`     an incident in one line, and what it did
`scene`      an incident step by step; `cast` chooses who is told, `between` sums up the others,
             `evidence` tells of operations one by one
`reasons`    why a judge is certain
`blame`      whose fault; `cures`, what would prevent it; `effects`, what a fault did
`numbers`    writes by a number that readers can count
`seen`       what the run saw, whatever was found
`refused`    what the storage's guard kept out
`definitions`  overlaps and linearizability, side by side
"""

from __future__ import annotations
