/* Locks with an owner, the same as in `models.py` and `leases.py`: Python would be too slow, since
   every grant has a token or a lease of its own. */

#ifndef LOCKCHECK_LOCKS_H
#define LOCKCHECK_LOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "memory.h"

#pragma GCC visibility push(hidden)

enum { ACQUIRE = 0, RELEASE = 1, RENEW = 2 };

/* The call of each class: in the order of `search/native.py`. */
typedef struct {
    int64_t f, process, token, until, confirmed;
} Call;

/* The state of a lock; `promised` is NEVER while it is free, and without leases. */
typedef struct {
    int64_t owner, times, token, exact, promised;
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
    uint32_t *table; /* open addressing of the numbers plus 1; 0 if free */
    size_t size;
} Locks;

void locks_begin(Locks *l, Exhausted *exhausted, const Lock *lock);
void locks_free(Locks *l);
/* The number of the next state, or -1 if the call is illegal. */
int32_t locks_step(Locks *l, Exhausted *exhausted, int32_t kind, int32_t state);
int32_t locks_lapse(Locks *l, Exhausted *exhausted, int32_t state);
/* The number that a state shares with those that only differ in the last token and the promise. */
int32_t locks_alike(Locks *l, Exhausted *exhausted, int32_t state);

#pragma GCC visibility pop

#endif
