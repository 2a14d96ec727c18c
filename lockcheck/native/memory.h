/* Arrays that grow, up to a limit for all of them. Without memory they jump back to where the work
   began, which frees everything: no function here returns an error. */

#ifndef LOCKCHECK_MEMORY_H
#define LOCKCHECK_MEMORY_H

#include <setjmp.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

typedef struct {
    jmp_buf out;
    size_t left; /* bytes that may still be used */
} Exhausted;

/* Counts bytes that are used here or elsewhere. */
void lockcheck_take(Exhausted *exhausted, size_t bytes);

/* At least one byte, all zero. */
void *lockcheck_zeroed(Exhausted *exhausted, size_t count, size_t size);

/* Frees an array of these functions. */
void lockcheck_give_back(Exhausted *exhausted, void *array, size_t count, size_t size);

/* The array with room for `wanted` items; doubles `*room` if it has to grow and enough is left. */
void *lockcheck_grown(Exhausted *exhausted, void *array, size_t *room, size_t wanted, size_t size);

#pragma GCC visibility pop

#endif
