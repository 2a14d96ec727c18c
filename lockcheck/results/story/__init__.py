"""A judgement in plain words, for the terminal, the report and verdict.json alike.

Pure functions: history and findings in, plain text out, without markup.

`narrative`  all of it, made once
`incidents`  findings with one cause; `grouping` finds out which they are
`point`      the headline, in at most twenty words; the verdict to the eye; whose it was
`picture`    the worst incident, drawn; `contrast`, what was expected and what happened
`verdict`    the same in a few sentences, with the numbers; `untested`, what `ok` does not show
`numbers`    writes by a number that readers can count
`seen`       what the run saw, whatever was found
`refused`    what the storage's guard kept out

In `steps/` an incident is a list of steps (`scene`): `cast` chooses the holds that are shown,
`between` sums up the others, `evidence` shows operations one by one. In `wording/`:

`codes`      the words of each check, which are in the check's own file
`doubts`     the sentence of each doubt
`titles`     an incident in one line, and what it did
`reasons`    why a judge is certain
`blame`      whose fault; `cures`, what would prevent it; `advice`, the same in at most three steps
`acts`       a fault as an act; `effects`, what a node went through
`definitions`  overlaps and linearizability, side by side
"""

from __future__ import annotations
