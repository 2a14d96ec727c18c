/* Vectors of how many unconfirmed operations of each class were used. Each is kept once and has a
   number; number 0 used none. */

#ifndef LOCKCHECK_COUNTERS_H
#define LOCKCHECK_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "memory.h"

#pragma GCC visibility push(hidden)

typedef struct {
    int32_t of, count; /* `count` operations of class `of` */
} Count;

typedef struct {
    size_t first;
    uint32_t length; /* the number of non-zero counts; they are in the order of the classes */
    uint32_t total;
    uint64_t hash;
} Vector;

typedef struct {
    Count *counts;
    size_t room_counts, used_counts;
    Vector *vectors;
    size_t room_vectors, used_vectors;
    uint32_t *table; /* open addressing of the vectors' numbers, 0 if free */
    size_t size;
} Counters;

void counters_begin(Counters *c, Exhausted *exhausted);
void counters_free(Counters *c);
int32_t counters_of(const Counters *c, uint32_t vector, int32_t of);
uint32_t counters_one_more(Counters *c, Exhausted *exhausted, uint32_t vector, int32_t of);
/* Whether `less` used no more of any class than `more`. */
int counters_within(const Counters *c, uint32_t less, uint32_t more);

#pragma GCC visibility pop

#endif
