/* Arrays that grow. Whoever runs out of memory jumps back to where the work was begun, which frees
   everything: nothing here has to be told whether it went well. */

#ifndef LOCKCHECK_MEMORY_H
#define LOCKCHECK_MEMORY_H

#include <setjmp.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

typedef struct {
    jmp_buf out;
} Exhausted;

/* At least one byte, all zero. */
void *lockcheck_zeroed(Exhausted *exhausted, size_t count, size_t size);

/* Room for `wanted` items, at least doubling `*room` if it has to grow. */
void *lockcheck_grown(Exhausted *exhausted, void *array, size_t *room, size_t wanted, size_t size);

#pragma GCC visibility pop

#endif
