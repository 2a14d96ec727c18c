#include "memory.h"

#include <stdint.h>
#include <stdlib.h>

void *lockcheck_zeroed(Exhausted *exhausted, size_t count, size_t size) {
    void *array = calloc(count ? count : 1, size);
    if (!array) longjmp(exhausted->out, 1);
    return array;
}

void *lockcheck_grown(Exhausted *exhausted, void *array, size_t *room, size_t wanted, size_t size) {
    if (wanted <= *room) return array;
    size_t more = *room < SIZE_MAX / 2 ? *room * 2 : SIZE_MAX;
    if (more < wanted) more = wanted;
    if (more < 64) more = 64;
    void *grown = more <= SIZE_MAX / size ? realloc(array, more * size) : NULL;
    if (!grown) longjmp(exhausted->out, 1);
    *room = more;
    return grown;
}
