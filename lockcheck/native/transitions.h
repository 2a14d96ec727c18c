/* The model as a table: (class of the operation, state) -> next state; and the ranks of the states.
   Missing entries are computed by Python, those of locks with an owner by `locks.h`. */

#ifndef LOCKCHECK_TRANSITIONS_H
#define LOCKCHECK_TRANSITIONS_H

#include <stddef.h>
#include <stdint.h>

#include "locks.h"
#include "memory.h"

#pragma GCC visibility push(hidden)

enum { ILLEGAL = -1, FAILED = -2 };
enum { LAPSE = -1, FIRST = -2 }; /* in place of a class: the end of a lease; the initial state */

/* As `Rank` in `models.py`. */
typedef struct {
    int64_t alike, token, promised;
} Rank;

/* The next state, with its rank; or ILLEGAL, or FAILED if Python raised an exception. */
typedef int32_t (*AskModel)(int32_t kind, int32_t state, Rank *rank);

typedef struct {
    uint64_t key;
    int32_t after;
} Transition;

typedef struct {
    Transition *table; /* open addressing; its size is a power of two */
    size_t size, known;
    Rank *ranks; /* of each state */
    size_t room, ranked;
    AskModel ask;
    int is_lock; /* Python is not called */
    Locks locks;
} Transitions;

/* `lock`: NULL for all models that Python computes. */
void transitions_begin(Transitions *t, Exhausted *exhausted, AskModel ask, const Lock *lock);
void transitions_free(Transitions *t);
int32_t transitions_ask(Transitions *t, Exhausted *exhausted, int32_t kind, int32_t state);
int32_t transitions_of_lock(Transitions *t, Exhausted *exhausted, int32_t kind, int32_t state);

#define NO_TRANSITION UINT64_MAX

/* Whether all that can follow `other` can follow `one`, too; the states must be alike. */
static inline int covers(const Transitions *t, int32_t one, int32_t other) {
    const Rank *a = &t->ranks[one], *b = &t->ranks[other];
    return a->token <= b->token && a->promised <= b->promised;
}

static inline uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 32)) * 0x9E3779B97F4A7C15u;
    return x ^ (x >> 29);
}

static inline int32_t transition(Transitions *t, Exhausted *exhausted, int32_t kind,
                                 int32_t state) {
    if (t->is_lock) return transitions_of_lock(t, exhausted, kind, state);
    uint64_t key = (uint64_t)(uint32_t)kind << 32 | (uint32_t)state;
    for (size_t i = mixed(key) & (t->size - 1);; i = (i + 1) & (t->size - 1)) {
        if (t->table[i].key == key) return t->table[i].after;
        if (t->table[i].key == NO_TRANSITION) return transitions_ask(t, exhausted, kind, state);
    }
}

#pragma GCC visibility pop

#endif
