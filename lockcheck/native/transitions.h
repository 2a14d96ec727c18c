/* The model as a table: (class of the operation, state) -> next state. What is not known yet is
   asked of Python. */

#ifndef LOCKCHECK_TRANSITIONS_H
#define LOCKCHECK_TRANSITIONS_H

#include <stddef.h>
#include <stdint.h>

#include "memory.h"

#pragma GCC visibility push(hidden)

enum { ILLEGAL = -1, FAILED = -2 };

/* The next state, ILLEGAL, or FAILED if Python raised. */
typedef int32_t (*AskModel)(int32_t kind, int32_t state);

typedef struct {
    uint64_t key;
    int32_t after;
} Transition;

typedef struct {
    Transition *table; /* open addressing; its size is a power of two */
    size_t size, known;
    AskModel ask;
} Transitions;

void transitions_begin(Transitions *t, Exhausted *exhausted, AskModel ask);
void transitions_free(Transitions *t);
int32_t transitions_ask(Transitions *t, Exhausted *exhausted, int32_t kind, int32_t state);

#define NO_TRANSITION UINT64_MAX

static inline uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 32)) * 0x9E3779B97F4A7C15u;
    return x ^ (x >> 29);
}

static inline int32_t transition(Transitions *t, Exhausted *exhausted, int32_t kind,
                                 int32_t state) {
    uint64_t key = (uint64_t)(uint32_t)kind << 32 | (uint32_t)state;
    for (size_t i = mixed(key) & (t->size - 1);; i = (i + 1) & (t->size - 1)) {
        if (t->table[i].key == key) return t->table[i].after;
        if (t->table[i].key == NO_TRANSITION) return transitions_ask(t, exhausted, kind, state);
    }
}

#pragma GCC visibility pop

#endif
