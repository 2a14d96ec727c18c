/* Arrays that grow, up to a limit for all of them. Whoever runs out of memory jumps back to where the
   work was begun, which frees everything: nothing here has to be told whether it went well. */

#ifndef LOCKCHECK_MEMORY_H
#define LOCKCHECK_MEMORY_H

#include <setjmp.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

typedef struct {
    jmp_buf out;
    size_t left; /* bytes that may still be taken */
} Exhausted;

/* So many bytes are taken, here or elsewhere. */
void lockcheck_take(Exhausted *exhausted, size_t bytes);

/* At least one byte, all zero. */
void *lockcheck_zeroed(Exhausted *exhausted, size_t count, size_t size);

/* One of those that is no longer needed. */
void lockcheck_give_back(Exhausted *exhausted, void *array, size_t count, size_t size);

/* Room for `wanted` items, doubling `*room` if it has to grow and there is as much left. */
void *lockcheck_grown(Exhausted *exhausted, void *array, size_t *room, size_t wanted, size_t size);

#pragma GCC visibility pop

#endif
