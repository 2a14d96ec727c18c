"""For the properties on which everything rests: ten times as many examples as others get."""

from hypothesis import settings

often = settings(max_examples=10 * settings().max_examples)
