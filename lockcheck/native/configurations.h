/* The configurations that a search has seen, at the returns that it has not left behind.

   A configuration is freed when its place was forgotten and no descendant is left, so the path to
   every remaining one is known. */

#ifndef LOCKCHECK_CONFIGURATIONS_H
#define LOCKCHECK_CONFIGURATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "counters.h"
#include "memory.h"
#include "transitions.h"

#pragma GCC visibility push(hidden)

typedef uint32_t Number; /* of a configuration */

enum { NO_CONFIGURATION = 0 };

typedef struct {
    int32_t place; /* the next return, whose operation has not taken effect */
    int32_t state;
    int32_t last; /* what took effect last: a name, or -2 - u for one of the maybe class u */
    uint32_t used;
    Number parent;
    uint32_t needed; /* references: from its place, and from each child */
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
    size_t stride, room, count; /* number 0 is NO_CONFIGURATION */
    size_t words;               /* of each mask */
    Number freed;               /* the first one that can be reused */
    const Transitions *transitions;
    Number *heads;
    size_t size; /* of heads: a power of two */
    size_t seen; /* at the places that are not forgotten */
    size_t compared; /* comparisons so far */
    Place *places;
    int32_t lowest, furthest;
} Configurations;

static inline Configuration *configuration(const Configurations *c, Number number) {
    return (Configuration *)(void *)(c->memory + number * c->stride);
}

void configurations_begin(Configurations *c, Exhausted *exhausted, const Transitions *transitions,
                          int32_t places, int32_t slots);
void configurations_free(Configurations *c);
/* The new number, or NO_CONFIGURATION if one as good was seen. `mask` must not be a configuration's. */
Number configurations_add(Configurations *c, Exhausted *exhausted, const Counters *counters,
                          const Configuration *what, const uint64_t *mask);
/* The first at a place with ways left to try, or NO_CONFIGURATION. */
Number configurations_waiting(Configurations *c, int32_t place);
void configurations_forget_lowest(Configurations *c);

#pragma GCC visibility pop

#endif
