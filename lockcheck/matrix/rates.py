"""How often something came, and what that says of how often it comes: rates with an interval."""

from __future__ import annotations

from math import sqrt

Z = 1.959964  # of 95 %


def interval(k: int, n: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for the rate of something that came `k` times in `n`."""
    if not n:
        return 0.0, 1.0
    rate, spread = k / n, Z * Z / n
    middle = (rate + spread / 2) / (1 + spread)
    half = sqrt(spread * (rate * (1 - rate) + spread / 4)) / (1 + spread)
    # At both ends it is exact, and not only nearly:
    return (middle - half if k else 0.0), (middle + half if k < n else 1.0)


def at_most(n: int) -> float:
    """What came in none of `n` has a rate below this, by the rule of three (95 %)."""
    return min(1.0, 3 / n) if n else 1.0


def percent(share: float) -> str:
    """0 % and 100 % are exactly that: 1 of 300 is 0.3 %."""
    digits = 0
    while 0 < share < 1 and float(f"{100 * share:.{digits}f}") in (0, 100):
        digits += 1
    return f"{100 * share:.{digits}f} %"


def rate_words(k: int, n: int) -> str:
    """As in "18 of 20, 90 %, 95 % interval 70 to 97 %"."""
    if not n:
        return "none ran"
    if not k:
        return f"none of {n:,}: the true rate may be up to {percent(at_most(n))}"
    low, high = map(percent, interval(k, n))
    return f"{k:,} of {n:,}, {percent(k / n)}, 95 % interval {low.removesuffix(' %')} to {high}"
