/* The plan of a search: `search/plan.py` explains the columns. */

#ifndef LOCKCHECK_PLAN_H
#define LOCKCHECK_PLAN_H

#include <stdint.h>

typedef struct {
    int32_t returns, calls_count, kinds, maybes, slots;
    const int32_t *kind, *slot, *twin, *called; /* of each return */
    const int64_t *time;                        /* of each return */
    const int32_t *calls;                       /* of each call */
    const int8_t *looks;                        /* of each class */
    const int32_t *maybe;                       /* of each class of unconfirmed operations */
    const int32_t *first, *earlier;
} Plan;

enum { NONE = -1 };

#endif
