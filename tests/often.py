"""For the properties on which everything rests: twice as many examples as others get."""

from hypothesis import settings

often = settings(max_examples=2 * settings().max_examples)
