#include "counters.h"

#include <stdlib.h>
#include <string.h>

static void begin_table(Counters *c, Exhausted *exhausted, size_t size) {
    uint32_t *table = lockcheck_zeroed(exhausted, size, sizeof *table);
    lockcheck_give_back(exhausted, c->table, c->size, sizeof *table);
    c->table = table;
    c->size = size;
    for (size_t vector = 1; vector < c->used_vectors; vector++) {
        size_t i = c->vectors[vector].hash & (size - 1);
        while (c->table[i]) i = (i + 1) & (size - 1);
        c->table[i] = (uint32_t)vector;
    }
}

void counters_begin(Counters *c, Exhausted *exhausted) {
    c->vectors = lockcheck_grown(exhausted, NULL, &c->room_vectors, 1, sizeof *c->vectors);
    c->counts = lockcheck_grown(exhausted, NULL, &c->room_counts, 1, sizeof *c->counts);
    c->vectors[0] = (Vector){0, 0, 0, 0};
    c->used_vectors = 1;
    begin_table(c, exhausted, 256);
}

void counters_free(Counters *c) {
    free(c->counts);
    free(c->vectors);
    free(c->table);
}

/* Where the count of a class is, or would be, in its vector. */
static uint32_t place_of(const Counters *c, const Vector *v, int32_t of) {
    uint32_t low = 0, high = v->length;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->counts[v->first + middle].of < of)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t counters_of(const Counters *c, uint32_t vector, int32_t of) {
    const Vector *v = &c->vectors[vector];
    uint32_t place = place_of(c, v, of);
    const Count *count = c->counts + v->first + place;
    return place < v->length && count->of == of ? count->count : 0;
}

/* The hash of a vector is a sum, so that one more operation only adds to it. */
static uint64_t hash_of(int32_t of, int32_t count) {
    uint64_t x = ((uint64_t)(uint32_t)of << 32 | (uint32_t)count) + 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

uint32_t counters_one_more(Counters *c, Exhausted *exhausted, uint32_t vector, int32_t of) {
    Vector before = c->vectors[vector];
    size_t first = c->used_counts;
    c->counts = lockcheck_grown(exhausted, c->counts, &c->room_counts, first + before.length + 1,
                                sizeof *c->counts);
    uint32_t place = place_of(c, &before, of);
    Count *old = c->counts + before.first, *new = c->counts + first;
    int known = place < before.length && old[place].of == of;
    int32_t count = known ? old[place].count + 1 : 1;
    memcpy(new, old, place * sizeof *new);
    new[place] = (Count){of, count};
    uint32_t rest = place + (known ? 1 : 0);
    memcpy(new + place + 1, old + rest, (before.length - rest) * sizeof *new);
    uint32_t length = before.length + (known ? 0 : 1);
    uint64_t hash = before.hash + hash_of(of, count);
    size_t i = hash & (c->size - 1);
    for (; c->table[i]; i = (i + 1) & (c->size - 1)) {
        const Vector *other = &c->vectors[c->table[i]];
        if (other->hash == hash && other->length == length &&
            !memcmp(c->counts + other->first, new, length * sizeof *new))
            return c->table[i];
    }
    c->used_counts += length;
    c->vectors = lockcheck_grown(exhausted, c->vectors, &c->room_vectors, c->used_vectors + 1,
                                 sizeof *c->vectors);
    uint32_t number = (uint32_t)c->used_vectors++;
    c->vectors[number] = (Vector){first, length, before.total + 1, hash};
    c->table[i] = number;
    if (2 * c->used_vectors > c->size) begin_table(c, exhausted, 2 * c->size);
    return number;
}

int counters_within(const Counters *c, uint32_t less, uint32_t more) {
    if (less == more) return 1;
    const Vector *a = &c->vectors[less], *b = &c->vectors[more];
    if (a->length > b->length || a->total >= b->total) return 0;
    const Count *x = c->counts + a->first, *y = c->counts + b->first;
    const Count *x_end = x + a->length, *y_end = y + b->length;
    while (x < x_end) {
        while (y < y_end && y->of < x->of) y++;
        if (y == y_end || y->of != x->of || y->count < x->count) return 0;
        x++;
        y++;
    }
    return 1;
}
