#include "locks.h"

#include <stdlib.h>
#include <string.h>

static const int64_t NEVER = (int64_t)1 << 61, NO_PROMISE = -((int64_t)1 << 61);
static const int64_t NO_TOKEN = INT64_MIN;
static const Held FREE = {-1, 0, INT64_MIN, 0, (int64_t)1 << 61};

static uint64_t hash_of(const Held *held) {
    uint64_t words[sizeof *held / sizeof(uint64_t)], hash = 0;
    memcpy(words, held, sizeof *held);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static void more_table(Locks *l, Exhausted *exhausted, size_t size) {
    uint32_t *table = lockcheck_zeroed(exhausted, size, sizeof *table);
    lockcheck_give_back(exhausted, l->table, l->size, sizeof *table);
    l->table = table;
    l->size = size;
    for (size_t number = 0; number < l->count; number++) {
        size_t i = hash_of(&l->states[number]) & (size - 1);
        while (table[i]) i = (i + 1) & (size - 1);
        table[i] = (uint32_t)number + 1;
    }
}

static int32_t number_of(Locks *l, Exhausted *exhausted, const Held *held) {
    size_t i = hash_of(held) & (l->size - 1);
    for (; l->table[i]; i = (i + 1) & (l->size - 1))
        if (!memcmp(&l->states[l->table[i] - 1], held, sizeof *held))
            return (int32_t)l->table[i] - 1;
    if (l->count >= INT32_MAX) longjmp(exhausted->out, 1);
    l->states = lockcheck_grown(exhausted, l->states, &l->room, l->count + 1, sizeof *l->states);
    l->states[l->count++] = *held;
    l->table[i] = (uint32_t)l->count;
    int32_t number = (int32_t)l->count - 1;
    if (2 * l->count > l->size) more_table(l, exhausted, 2 * l->size);
    return number;
}

void locks_begin(Locks *l, Exhausted *exhausted, const Lock *lock) {
    l->lock = *lock;
    more_table(l, exhausted, 256);
    number_of(l, exhausted, &FREE);
}

void locks_free(Locks *l) {
    free(l->states);
    free(l->table);
}

static int enter_again(const Lock *lock, Held *held, const Call *call) {
    if (!lock->many || (!call->confirmed && held->times > 1)) return 0;
    held->times++;
    if (call->token == NO_TOKEN || (held->exact && call->token == held->token)) return 1;
    if (held->exact || call->token < held->token) return 0;
    held->token = call->token;
    held->exact = 1;
    return 1;
}

static int grant(const Lock *lock, Held *held, const Call *call) {
    held->owner = call->process;
    held->times = 1;
    held->promised = NO_PROMISE;
    if (!lock->fenced) return 1;
    held->exact = call->token != NO_TOKEN;
    if (held->exact) {
        if (call->token <= held->token) return 0;
        held->token = call->token;
    } else if (held->token != NO_TOKEN && held->token != INT64_MAX) {
        held->token++;
    }
    return 1;
}

static void leave(Held *held) {
    held->owner = FREE.owner;
    held->times = 0;
    held->exact = 0;
    held->promised = NEVER;
}

int32_t locks_step(Locks *l, Exhausted *exhausted, int32_t kind, int32_t state) {
    const Call *call = &l->lock.calls[kind];
    Held held = l->states[state];
    int mine = held.times && held.owner == call->process;
    if (call->f == ACQUIRE) {
        if (held.times && !mine) return -1;
        if (!(mine ? enter_again : grant)(&l->lock, &held, call)) return -1;
    } else if (!mine) {
        return -1;
    } else if (call->f == RELEASE && !--held.times) {
        leave(&held);
    }
    if (call->f != RELEASE && call->until > held.promised) held.promised = call->until;
    return number_of(l, exhausted, &held);
}

int32_t locks_lapse(Locks *l, Exhausted *exhausted, int32_t state) {
    Held held = l->states[state];
    leave(&held);
    return number_of(l, exhausted, &held);
}

int32_t locks_alike(Locks *l, Exhausted *exhausted, int32_t state) {
    Held held = l->states[state];
    if (!held.exact || !held.times) held.token = NO_TOKEN;
    held.exact = -1; /* no real state has this value */
    held.promised = 0;
    return number_of(l, exhausted, &held);
}
