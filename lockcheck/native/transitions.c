#include "transitions.h"

#include <stdlib.h>

static void put(Transitions *t, uint64_t key, int32_t after) {
    size_t i = mixed(key) & (t->size - 1);
    while (t->table[i].key != NO_TRANSITION) i = (i + 1) & (t->size - 1);
    t->table[i] = (Transition){key, after};
}

static void resize(Transitions *t, Exhausted *exhausted, size_t size) {
    Transition *old = t->table;
    size_t count = old ? t->size : 0;
    t->table = lockcheck_zeroed(exhausted, size, sizeof *t->table);
    t->size = size;
    for (size_t i = 0; i < size; i++) t->table[i].key = NO_TRANSITION;
    for (size_t i = 0; i < count; i++)
        if (old[i].key != NO_TRANSITION) put(t, old[i].key, old[i].after);
    lockcheck_give_back(exhausted, old, count, sizeof *old);
}

enum { BYTES_OF_A_STATE = 500 }; /* in Python, with its transitions */

/* Asks Python. States are numbered as they are found, so a new one is the next. */
static int32_t ask(Transitions *t, Exhausted *exhausted, int32_t kind, int32_t state) {
    Rank rank;
    int32_t after = t->ask(kind, state, &rank);
    if (after < 0) return after;
    t->ranks = lockcheck_grown(exhausted, t->ranks, &t->room, (size_t)after + 1, sizeof *t->ranks);
    t->ranks[after] = rank;
    for (; t->ranked <= (size_t)after; t->ranked++) lockcheck_take(exhausted, BYTES_OF_A_STATE);
    return after;
}

/* Ranks a state. The one that stands for all alike is never reached, so it needs no rank. */
static int32_t ranked(Transitions *t, Exhausted *exhausted, int32_t state) {
    if (state < 0 || ((size_t)state < t->ranked && t->ranks[state].alike >= 0)) return state;
    int32_t alike = locks_alike(&t->locks, exhausted, state);
    size_t count = t->locks.count;
    t->ranks = lockcheck_grown(exhausted, t->ranks, &t->room, count, sizeof *t->ranks);
    while (t->ranked < count) t->ranks[t->ranked++].alike = -1;
    const Held *held = &t->locks.states[state];
    t->ranks[state] = (Rank){alike, held->token, held->promised};
    return state;
}

int32_t transitions_of_lock(Transitions *t, Exhausted *exhausted, int32_t kind, int32_t state) {
    int32_t after = kind == LAPSE ? locks_lapse(&t->locks, exhausted, state)
                                  : locks_step(&t->locks, exhausted, kind, state);
    return ranked(t, exhausted, after);
}

void transitions_begin(Transitions *t, Exhausted *exhausted, AskModel asked, const Lock *lock) {
    t->ask = asked;
    t->is_lock = lock != NULL;
    if (lock) {
        locks_begin(&t->locks, exhausted, lock);
        ranked(t, exhausted, 0);
        return;
    }
    resize(t, exhausted, 256);
    ask(t, exhausted, FIRST, 0);
}

void transitions_free(Transitions *t) {
    free(t->table);
    free(t->ranks);
    locks_free(&t->locks);
}

int32_t transitions_ask(Transitions *t, Exhausted *exhausted, int32_t kind, int32_t state) {
    int32_t after = ask(t, exhausted, kind, state);
    if (after == FAILED) return FAILED;
    if (2 * ++t->known > t->size) resize(t, exhausted, 2 * t->size);
    put(t, (uint64_t)(uint32_t)kind << 32 | (uint32_t)state, after);
    return after;
}
