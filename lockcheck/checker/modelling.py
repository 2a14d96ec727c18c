"""The models that a history is judged by: the requested one, and those that its operations fit."""

from __future__ import annotations

import numpy as np

from lockcheck.checker.linearizability import Model
from lockcheck.checker.linearizability.crowds import owned_permits
from lockcheck.checker.linearizability.models import (
    FENCED,
    LOCKING,
    MODELS,
    OWNER_MUTEX,
    REENTRANT,
    REENTRANT_FENCED,
    semaphore,
)
from lockcheck.checker.logs.guess import models_of
from lockcheck.history import Terms
from lockcheck.history.table import Op, Table

SEMAPHORE, OWNER_SEMAPHORE, SHARED = "semaphore", "owner-semaphore", "shared"
SEMAPHORES = (SEMAPHORE, OWNER_SEMAPHORE)
STORED = frozenset({Op.READ, Op.WRITE, Op.CAS, Op.ADD})


def models_for(terms: Terms, table: Table) -> list[Model]:
    """The requested model, and for objects of the other family those that their operations fit.
    A lock that counts levels, or that any client releases, has no model if some share it."""
    if table.shared.any():
        lock = [] if terms.reentrant or terms.released_by_anyone else [MODELS[SHARED]]
        return lock + [
            model for model in map(MODELS.get, models_of(table)) if model and not is_lock(model)
        ]
    asked = [_model(terms.model, terms.permits)] if terms.model in MODELS else []
    guessed = [_model(name, terms.permits) for name in models_of(table)]
    families = {is_lock(model) for model in asked}
    families |= set() if terms.excludes else {True}
    return asked + [model for model in guessed if is_lock(model) not in families]


def _model(name: str, permits: int) -> Model:
    if name == SEMAPHORE:
        return semaphore(permits)
    counted = name == OWNER_SEMAPHORE or (permits > 1 and MODELS[name].operations == LOCKING)
    return owned_permits(permits) if counted else MODELS[name]


def nested_instead(model: Model, terms: Terms) -> Model | None:
    """The reentrant model that a production log may need instead, if no model was requested."""
    guessed = terms.partial and not terms.model
    return {OWNER_MUTEX: REENTRANT, FENCED: REENTRANT_FENCED}.get(model) if guessed else None


def is_lock(model: Model) -> bool:
    return model.operations == LOCKING


def misfit(table: Table, terms: Terms) -> str:
    """Why the history cannot be judged by the model of its terms; empty if it can."""
    if not terms.model:
        return ""
    if terms.model not in MODELS:
        return f"unknown model {terms.model!r}: choose from {', '.join(MODELS)}"
    if terms.permits > 1 and terms.model not in SEMAPHORES:
        return f"the model {terms.model} has no permits: those are a semaphore's"
    model = MODELS[terms.model]
    there = {Op(f) for f in np.unique(table.f).tolist()}
    family = there & (LOCKING if is_lock(model) else STORED)
    unknown = sorted(family - model.operations)
    if there and not family:
        unknown = sorted(there)
    names = ", ".join(op.name.lower() for op in unknown)
    return f"the model {model.name} does not know {names}" if unknown else ""
