/* The configurations that a search has seen, at the returns that it has not left behind.

   One of them is freed when its place was forgotten and nothing that came from it is left: the way
   to each that is left can always be told. */

#ifndef LOCKCHECK_CONFIGURATIONS_H
#define LOCKCHECK_CONFIGURATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "counters.h"
#include "memory.h"
#include "transitions.h"

#pragma GCC visibility push(hidden)

typedef uint32_t Number; /* of a configuration */

enum { NOBODY = 0 };

typedef struct {
    int32_t place; /* the return that is next, whose operation has not taken effect */
    int32_t state;
    int32_t last; /* what took effect last: a name, or -2 - u for one of the maybe class u */
    uint32_t used;
    Number parent;
    uint32_t needed; /* by its place, and by each that came from it */
    Number chained;  /* the next of the same hash */
    Number following; /* the next at the same place */
    uint32_t tried;
    uint32_t dominated;
    uint64_t mask[];
} Configuration;

typedef struct {
    Number first, last, waiting;
} Place;

typedef struct {
    char *memory;
    size_t stride, room, count; /* number 0 is NOBODY */
    size_t words;               /* of each mask */
    Number freed;               /* the first of those that can be used again */
    const Transitions *transitions;
    Number *heads;
    size_t size; /* of heads: a power of two */
    size_t seen; /* at the places that are not forgotten */
    size_t compared; /* how often two of them were, so far */
    Place *places;
    int32_t lowest, furthest;
} Configurations;

static inline Configuration *configuration(const Configurations *c, Number number) {
    return (Configuration *)(void *)(c->memory + number * c->stride);
}

void configurations_begin(Configurations *c, Exhausted *exhausted, const Transitions *transitions,
                          int32_t places, int32_t slots);
void configurations_free(Configurations *c);
/* Its number, or NOBODY if one as good was seen. `mask` is not one of the configurations' own. */
Number configurations_add(Configurations *c, Exhausted *exhausted, const Counters *counters,
                          const Configuration *what, const uint64_t *mask);
/* The first at a place that was not tried in all ways, or NOBODY. */
Number configurations_waiting(Configurations *c, int32_t place);
void configurations_forget_lowest(Configurations *c);

#pragma GCC visibility pop

#endif
