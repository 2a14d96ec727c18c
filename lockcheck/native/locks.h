/* Locks that have an owner, as `models.py` and `leases.py` say what they are: here so that Python
   need not be asked of every grant, which has a token or a lease of its own. */

#ifndef LOCKCHECK_LOCKS_H
#define LOCKCHECK_LOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "memory.h"

#pragma GCC visibility push(hidden)

enum { ACQUIRE = 0, RELEASE = 1, RENEW = 2 };

/* What is called, of each class: in the order of `search_native.py`. */
typedef struct {
    int64_t f, process, token, until, confirmed;
} Call;

/* All of one lock; `promised` is NEVER while it is free, and where there are no leases. */
typedef struct {
    int64_t owner, times, token, told, promised;
} Held;

typedef struct {
    int32_t many;   /* its owner may enter again */
    int32_t fenced; /* its grants have tokens */
    const Call *calls;
} Lock;

typedef struct {
    Lock lock;
    Held *states; /* by their numbers */
    size_t count, room;
    uint32_t *table; /* open addressing of the numbers, one more than each; 0 where free */
    size_t size;
} Locks;

void locks_begin(Locks *l, Exhausted *exhausted, const Lock *lock);
void locks_free(Locks *l);
/* The number of the state that follows, or -1 where none can. */
int32_t locks_step(Locks *l, Exhausted *exhausted, int32_t kind, int32_t state);
int32_t locks_lapse(Locks *l, Exhausted *exhausted, int32_t state);
/* The number that a state shares with those that differ in nothing but the last token and the
   promise. */
int32_t locks_alike(Locks *l, Exhausted *exhausted, int32_t state);

#pragma GCC visibility pop

#endif
