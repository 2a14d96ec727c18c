/* Which operations run while the search is at a return; moves from one return to the next. */

#ifndef LOCKCHECK_RUNNING_H
#define LOCKCHECK_RUNNING_H

#include <stdint.h>

#include "memory.h"
#include "plan.h"

#pragma GCC visibility push(hidden)

typedef struct {
    int32_t *names; /* in the order of their returns */
    int32_t count;
} Names;

typedef struct {
    const Plan *plan;
    int32_t place;
    Names writers, lookers, maybes; /* the maybes are classes, in the order of their first calls */
    int32_t *when;                  /* each confirmed operation's place among the calls */
    int32_t *maybe_first;           /* by class: its first index in */
    int32_t *maybe_when;            /* the places of unconfirmed operations among the calls */
} Running;

void running_begin(Running *r, Exhausted *exhausted, const Plan *plan);
void running_free(Running *r);
void running_move(Running *r, int32_t place);

static inline int running_is_called(const Running *r, int32_t name) {
    return r->when[name] < r->plan->called[r->place];
}

/* Whether more than `used` operations of the class were called by now. */
static inline int running_has_maybe(const Running *r, int32_t number, int32_t used) {
    int32_t at = r->maybe_first[number] + used;
    return at < r->maybe_first[number + 1] && r->maybe_when[at] < r->plan->called[r->place];
}

#pragma GCC visibility pop

#endif
