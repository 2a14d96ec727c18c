#include "configurations.h"

#include <stdlib.h>
#include <string.h>

void configurations_begin(Configurations *c, Exhausted *exhausted, const Transitions *transitions,
                          int32_t places, int32_t slots) {
    c->transitions = transitions;
    c->words = ((size_t)slots + 63) / 64;
    c->stride = sizeof(Configuration) + c->words * sizeof(uint64_t);
    c->count = 1;
    c->size = 1024;
    c->heads = lockcheck_zeroed(exhausted, c->size, sizeof *c->heads);
    c->places = lockcheck_zeroed(exhausted, (size_t)places, sizeof *c->places);
}

void configurations_free(Configurations *c) {
    free(c->memory);
    free(c->heads);
    free(c->places);
}

static int64_t alike(const Configurations *c, int32_t state) {
    return c->transitions->ranks[state].alike;
}

/* The bucket; configurations whose states are alike share one. */
static size_t bucket(const Configurations *c, int32_t place, int32_t state, const uint64_t *mask) {
    uint64_t hash = mixed((uint64_t)(uint32_t)place << 32 | (uint32_t)alike(c, state));
    for (size_t i = 0; i < c->words; i++) hash = mixed(hash ^ mask[i]);
    return hash & (c->size - 1);
}

static void chain(Configurations *c, Number number) {
    Configuration *it = configuration(c, number);
    Number *head = &c->heads[bucket(c, it->place, it->state, it->mask)];
    it->chained = *head;
    *head = number;
}

static void unchain(Configurations *c, Number number) {
    Configuration *it = configuration(c, number);
    Number *link = &c->heads[bucket(c, it->place, it->state, it->mask)];
    while (*link != number) link = &configuration(c, *link)->chained;
    *link = it->chained;
}

static void more_heads(Configurations *c, Exhausted *exhausted) {
    Number *heads = lockcheck_zeroed(exhausted, 2 * c->size, sizeof *heads);
    lockcheck_give_back(exhausted, c->heads, c->size, sizeof *heads);
    c->heads = heads;
    c->size *= 2;
    for (int32_t place = c->lowest; place <= c->furthest; place++)
        for (Number n = c->places[place].first; n; n = configuration(c, n)->following) chain(c, n);
}

/* Whether a configuration as good was seen; marks those that `what` is better than. */
static int is_dominated(Configurations *c, const Counters *counters, const Configuration *what,
                        const uint64_t *mask) {
    Number number = c->heads[bucket(c, what->place, what->state, mask)];
    while (number) {
        Configuration *other = configuration(c, number);
        c->compared++;
        if (other->place == what->place && alike(c, other->state) == alike(c, what->state) &&
            !memcmp(other->mask, mask, c->words * sizeof *mask)) {
            if (covers(c->transitions, other->state, what->state) &&
                counters_within(counters, other->used, what->used))
                return 1;
            if (covers(c->transitions, what->state, other->state) &&
                counters_within(counters, what->used, other->used))
                other->dominated = 1;
        }
        number = other->chained;
    }
    return 0;
}

static Number fresh(Configurations *c, Exhausted *exhausted) {
    Number number = c->freed;
    if (number) {
        c->freed = configuration(c, number)->following;
        return number;
    }
    if (c->count >= UINT32_MAX) longjmp(exhausted->out, 1);
    c->memory = lockcheck_grown(exhausted, c->memory, &c->room, c->count + 1, c->stride);
    return (Number)c->count++;
}

Number configurations_add(Configurations *c, Exhausted *exhausted, const Counters *counters,
                          const Configuration *what, const uint64_t *mask) {
    if (is_dominated(c, counters, what, mask)) return NO_CONFIGURATION;
    if (c->seen >= c->size) more_heads(c, exhausted);
    Number number = fresh(c, exhausted);
    Configuration *it = configuration(c, number);
    *it = *what;
    memcpy(it->mask, mask, c->words * sizeof *mask);
    it->needed = 1;
    it->following = NO_CONFIGURATION;
    if (it->parent) configuration(c, it->parent)->needed++;
    chain(c, number);
    Place *place = &c->places[it->place];
    if (place->last)
        configuration(c, place->last)->following = number;
    else
        place->first = number;
    place->last = number;
    if (!place->waiting) place->waiting = number;
    if (it->place > c->furthest) c->furthest = it->place;
    c->seen++;
    return number;
}

Number configurations_waiting(Configurations *c, int32_t place) {
    Number *waiting = &c->places[place].waiting;
    while (*waiting && configuration(c, *waiting)->dominated)
        *waiting = configuration(c, *waiting)->following;
    return *waiting;
}

static void unreference(Configurations *c, Number number) {
    while (number) {
        Configuration *it = configuration(c, number);
        if (--it->needed) return;
        Number parent = it->parent;
        it->following = c->freed;
        c->freed = number;
        number = parent;
    }
}

void configurations_forget_lowest(Configurations *c) {
    Place *place = &c->places[c->lowest++];
    for (Number number = place->first, next; number; number = next) {
        next = configuration(c, number)->following;
        unchain(c, number);
        c->seen--;
        unreference(c, number);
    }
    *place = (Place){NO_CONFIGURATION, NO_CONFIGURATION, NO_CONFIGURATION};
}
