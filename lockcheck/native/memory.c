#include "memory.h"

#include <stdint.h>
#include <stdlib.h>

void lockcheck_take(Exhausted *exhausted, size_t bytes) {
    if (bytes > exhausted->left) longjmp(exhausted->out, 1);
    exhausted->left -= bytes;
}

void *lockcheck_zeroed(Exhausted *exhausted, size_t count, size_t size) {
    if (!count) count = 1;
    if (count > SIZE_MAX / size) longjmp(exhausted->out, 1);
    lockcheck_take(exhausted, count * size);
    void *array = calloc(count, size);
    if (!array) longjmp(exhausted->out, 1);
    return array;
}

void lockcheck_give_back(Exhausted *exhausted, void *array, size_t count, size_t size) {
    free(array);
    exhausted->left += array ? count * size : 0;
}

void *lockcheck_grown(Exhausted *exhausted, void *array, size_t *room, size_t wanted, size_t size) {
    if (wanted <= *room) return array;
    size_t more = wanted - *room, most = exhausted->left / size;
    if (more < *room) more = *room;
    if (more < 64) more = 64;
    if (more > most && most >= wanted - *room) more = most;
    if (more > most) longjmp(exhausted->out, 1);
    void *grown = realloc(array, (*room + more) * size);
    if (!grown) longjmp(exhausted->out, 1);
    lockcheck_take(exhausted, more * size);
    *room += more;
    return grown;
}
