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
    free(old);
}

void transitions_begin(Transitions *t, Exhausted *exhausted, AskModel ask) {
    t->ask = ask;
    resize(t, exhausted, 256);
}

void transitions_free(Transitions *t) { free(t->table); }

int32_t transitions_ask(Transitions *t, Exhausted *exhausted, int32_t kind, int32_t state) {
    int32_t after = t->ask(kind, state);
    if (after == FAILED) return FAILED;
    if (2 * ++t->known > t->size) resize(t, exhausted, 2 * t->size);
    put(t, (uint64_t)(uint32_t)kind << 32 | (uint32_t)state, after);
    return after;
}
