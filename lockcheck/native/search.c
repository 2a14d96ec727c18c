/* The general search. `search/python.py` does the same in the same order, and explains why it is
   right.

   Python computes everything that depends on the model: states and classes are numbers here. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "configurations.h"
#include "counters.h"
#include "memory.h"
#include "plan.h"
#include "running.h"
#include "transitions.h"

enum { PATIENCE_EVERY = 4096, COMPARED_PER_TRY = 64 };

typedef enum {
    STUCK = 0,
    LINEARIZABLE = 1,
    IMPATIENT = 2,
    OUT_OF_MEMORY = 3,
    RAISED = 4, /* the model raised an exception in Python */
    GOING_ON = 5,
} Verdict;

/* Takes the number of returns that were explained; returns whether to go on. */
typedef int32_t (*AskPatience)(int32_t place);

typedef struct {
    int64_t many; /* configurations at once, above which the earliest go on first */
    int64_t most; /* bytes */
} Limits;

typedef struct {
    int32_t verdict, place;
    int64_t steps;        /* of `path`: pairs of what took effect, and at which return */
    int64_t states_count; /* of `states`, in which that return can be reached */
    int32_t *path, *states;
    Held *held; /* the same states, of locks with an owner */
} Found;

typedef struct {
    Exhausted exhausted;
    const Plan *plan;
    Limits limits;
    AskPatience patience;
    const Lock *lock;
    Transitions transitions;
    Counters counters;
    Configurations seen;
    Running running;
    uint64_t *mask; /* of the next configuration */
    int32_t deepest;
    int shallow;
    Verdict verdict;
} Search;

static int has(const uint64_t *mask, int32_t slot) { return mask[slot >> 6] >> (slot & 63) & 1; }
static void set(uint64_t *mask, int32_t slot) { mask[slot >> 6] |= (uint64_t)1 << (slot & 63); }
static void clear(uint64_t *mask, int32_t slot) {
    mask[slot >> 6] &= ~((uint64_t)1 << (slot & 63));
}

static int32_t step(Search *s, int32_t kind, int32_t state) {
    int32_t after = transition(&s->transitions, &s->exhausted, kind, state);
    if (after != FAILED) return after;
    s->verdict = RAISED;
    return ILLEGAL;
}

/* Whether all that its client did before has taken effect; `which` indexes `plan->first`. */
static int may_begin(const Search *s, int32_t which, int32_t place, const uint64_t *mask) {
    const Plan *plan = s->plan;
    for (int32_t i = plan->first[which]; i < plan->first[which + 1]; i++)
        if (plan->earlier[i] >= place && !has(mask, plan->slot[plan->earlier[i]])) return 0;
    return 1;
}

static void look(Search *s, const int32_t *names, int32_t count, int32_t place, int32_t state) {
    const Plan *plan = s->plan;
    for (int32_t i = 0; i < count; i++) {
        int32_t name = names[i];
        if (name >= 0 && plan->looks[plan->kind[name]] && !has(s->mask, plan->slot[name]) &&
            may_begin(s, name, place, s->mask) && step(s, plan->kind[name], state) != ILLEGAL)
            set(s->mask, plan->slot[name]);
    }
}

/* Goes past the returns of operations that have taken effect, up to one that has not. */
static int32_t settle(Search *s, int32_t place, int32_t state, int32_t called) {
    const Plan *plan = s->plan;
    for (; place < plan->returns; place++) {
        look(s, plan->calls + called, plan->called[place] - called, place, state);
        called = plan->called[place];
        if (!has(s->mask, plan->slot[place])) break;
        clear(s->mask, plan->slot[place]);
    }
    return place;
}

/* The configuration that follows, with the mask of the search; NO_CONFIGURATION if it was seen. */
static Number enter(Search *s, Number parent, int32_t state, uint32_t used, int32_t last) {
    int32_t place = 0, called = 0;
    if (parent) {
        Configuration *before = configuration(&s->seen, parent);
        place = before->place;
        called = s->plan->called[place];
        look(s, s->running.lookers.names, s->running.lookers.count, place, state);
    }
    place = settle(s, place, state, called);
    if (s->verdict != GOING_ON) return NO_CONFIGURATION;
    if (place == s->plan->returns) {
        s->verdict = LINEARIZABLE;
        return NO_CONFIGURATION;
    }
    Configuration what = {
        .place = place, .state = state, .last = last, .used = used, .parent = parent};
    if (place > s->deepest) s->deepest = place;
    return configurations_add(&s->seen, &s->exhausted, &s->counters, &what, s->mask);
}

static void begin_mask(Search *s, const Configuration *before) {
    memcpy(s->mask, before->mask, s->seen.words * sizeof *s->mask);
}

/* Whether an equal operation that returns earlier runs, too, and has not taken effect. */
static int is_behind(Search *s, int32_t twin, const Configuration *before) {
    return twin >= before->place && running_is_called(&s->running, twin) &&
           !has(before->mask, s->plan->slot[twin]);
}

static Number let(Search *s, Number number, int32_t name) {
    const Configuration *before = configuration(&s->seen, number);
    int32_t slot = s->plan->slot[name];
    if (has(before->mask, slot) || is_behind(s, s->plan->twin[name], before)) return NO_CONFIGURATION;
    if (!may_begin(s, name, before->place, before->mask)) return NO_CONFIGURATION;
    int32_t after = step(s, s->plan->kind[name], before->state);
    if (after == ILLEGAL) return NO_CONFIGURATION;
    begin_mask(s, before);
    set(s->mask, slot);
    return enter(s, number, after, before->used, name);
}

static Number let_maybe(Search *s, Number number, int32_t of) {
    const Configuration *before = configuration(&s->seen, number);
    int32_t used = counters_of(&s->counters, before->used, of);
    if (!running_has_maybe(&s->running, of, used)) return NO_CONFIGURATION;
    if (!may_begin(s, s->plan->returns + of, before->place, before->mask)) return NO_CONFIGURATION;
    int32_t after = step(s, s->plan->maybe[of], before->state);
    if (after == ILLEGAL || after == before->state) return NO_CONFIGURATION;
    begin_mask(s, before);
    uint32_t more = counters_one_more(&s->counters, &s->exhausted, before->used, of);
    return enter(s, number, after, more, NONE - 1 - of);
}

/* Ends the lease, like an operation that was called when the promise was over. */
static Number let_lapse(Search *s, Number number) {
    const Configuration *before = configuration(&s->seen, number);
    if (s->transitions.ranks[before->state].promised > s->plan->time[before->place]) return NO_CONFIGURATION;
    int32_t after = step(s, LAPSE, before->state);
    if (after < 0) return NO_CONFIGURATION;
    begin_mask(s, before);
    return enter(s, number, after, before->used, NONE - 1 - s->plan->maybes);
}

/* Tries the next way to go on from a configuration; adds the number of tries to `tries`. */
static Number try_next(Search *s, Number number, int64_t *tries) {
    Configuration *it = configuration(&s->seen, number);
    running_move(&s->running, it->place);
    uint32_t writers = (uint32_t)s->running.writers.count;
    uint32_t all = writers + (uint32_t)s->running.maybes.count; /* and the end of a lease */
    Number next = NO_CONFIGURATION;
    while (it->tried <= all && !next && s->verdict == GOING_ON) {
        uint32_t tried = it->tried++;
        ++*tries;
        if (tried < writers)
            next = let(s, number, s->running.writers.names[tried]);
        else if (tried < all)
            next = let_maybe(s, number, s->running.maybes.names[tried - writers]);
        else
            next = let_lapse(s, number);
        it = configuration(&s->seen, number); /* adding one may have moved them */
    }
    if (!next) s->seen.places[it->place].waiting = it->following;
    return next;
}

/* Lets what returns next take effect at once while it can: other ways are tried later. */
static void dive(Search *s, Number number, int64_t *tries) {
    while (number && s->verdict == GOING_ON) {
        Configuration *it = configuration(&s->seen, number);
        int32_t place = it->place;
        if (s->plan->looks[s->plan->kind[place]]) return;
        running_move(&s->running, place);
        it->tried = 1;
        ++*tries;
        number = let(s, number, place);
    }
}

static Number pick(Search *s) {
    Configurations *seen = &s->seen;
    while (seen->lowest < seen->furthest && !configurations_waiting(seen, seen->lowest))
        configurations_forget_lowest(seen);
    int64_t many = s->shallow ? s->limits.many / 2 : s->limits.many;
    s->shallow = (int64_t)seen->seen > many;
    if (s->shallow) return configurations_waiting(seen, seen->lowest);
    if (s->deepest < seen->lowest) s->deepest = seen->lowest;
    while (s->deepest > seen->lowest && !configurations_waiting(seen, s->deepest)) s->deepest--;
    return configurations_waiting(seen, s->deepest);
}

static void run(Search *s) {
    int64_t tries = 0, asked = 0;
    dive(s, enter(s, NO_CONFIGURATION, 0, 0, NONE), &tries);
    while (s->verdict == GOING_ON) {
        int64_t work = tries + (int64_t)(s->seen.compared / COMPARED_PER_TRY);
        if (work - asked >= PATIENCE_EVERY) {
            asked = work;
            if (!s->patience(s->seen.furthest)) {
                s->verdict = IMPATIENT;
                return;
            }
        }
        Number number = pick(s);
        if (!number) {
            s->verdict = STUCK;
            return;
        }
        dive(s, try_next(s, number, &tries), &tries);
    }
}

static int32_t taken(const Search *s, const Configuration *it) {
    int32_t count = 0;
    for (size_t i = 0; i < s->seen.words; i++) count += __builtin_popcountll(it->mask[i]);
    return count;
}

/* Of the furthest configurations the one in which most has taken effect, with fewest unconfirmed. */
static Number best(const Search *s) {
    Number best = s->seen.places[s->seen.furthest].first;
    for (Number n = best; n; n = configuration(&s->seen, n)->following) {
        const Configuration *it = configuration(&s->seen, n);
        const Configuration *other = configuration(&s->seen, best);
        int32_t more = taken(s, it) - taken(s, other);
        uint32_t used = s->counters.vectors[it->used].total;
        if (more > 0 || (!more && used < s->counters.vectors[other->used].total)) best = n;
    }
    return best;
}

static void fill_path(Search *s, Found *found) {
    Number end = best(s);
    for (Number n = end; configuration(&s->seen, n)->parent; n = configuration(&s->seen, n)->parent)
        found->steps++;
    found->path = lockcheck_zeroed(&s->exhausted, (size_t)found->steps, 2 * sizeof *found->path);
    int32_t *to = found->path + 2 * found->steps;
    for (Number n = end; configuration(&s->seen, n)->parent;) {
        const Configuration *it = configuration(&s->seen, n);
        *--to = configuration(&s->seen, it->parent)->place;
        *--to = it->last;
        n = it->parent;
    }
}

static void fill_states(Search *s, Found *found) {
    Number first = s->seen.places[s->seen.furthest].first;
    int64_t count = 0;
    for (Number n = first; n; n = configuration(&s->seen, n)->following) count++;
    found->states = lockcheck_zeroed(&s->exhausted, (size_t)count, sizeof *found->states);
    for (Number n = first; n; n = configuration(&s->seen, n)->following)
        if (!configuration(&s->seen, n)->dominated)
            found->states[found->states_count++] = configuration(&s->seen, n)->state;
    if (!s->lock) return;
    found->held = lockcheck_zeroed(&s->exhausted, (size_t)count, sizeof *found->held);
    for (int64_t i = 0; i < found->states_count; i++)
        found->held[i] = s->transitions.locks.states[found->states[i]];
}

static void begin(Search *s) {
    transitions_begin(&s->transitions, &s->exhausted, s->transitions.ask, s->lock);
    counters_begin(&s->counters, &s->exhausted);
    configurations_begin(&s->seen, &s->exhausted, &s->transitions, s->plan->returns,
                         s->plan->slots);
    running_begin(&s->running, &s->exhausted, s->plan);
    s->mask = lockcheck_zeroed(&s->exhausted, s->seen.words, sizeof *s->mask);
    s->verdict = GOING_ON;
}

void lockcheck_search(const Plan *plan, const Lock *lock, AskModel model, AskPatience patience,
                      const Limits *limits, Found *found);
void lockcheck_search_free(Found *found);

/* `plan` has at least one return; `lock` may be NULL. `found` always has to be freed. */
void lockcheck_search(const Plan *plan, const Lock *lock, AskModel model, AskPatience patience,
                      const Limits *limits, Found *found) {
    memset(found, 0, sizeof *found);
    Search *s = calloc(1, sizeof *s);
    found->verdict = OUT_OF_MEMORY;
    if (!s) return;
    s->plan = plan;
    s->limits = *limits;
    s->exhausted.left = (size_t)limits->most;
    s->patience = patience;
    s->lock = lock;
    s->transitions.ask = model;
    if (!setjmp(s->exhausted.out)) {
        begin(s);
        run(s);
        if (s->verdict == STUCK) {
            s->exhausted.left = SIZE_MAX; /* no limit for the result */
            fill_path(s, found);
            fill_states(s, found);
        }
        found->verdict = s->verdict;
    }
    found->place = s->verdict == LINEARIZABLE ? plan->returns : s->seen.furthest;
    transitions_free(&s->transitions);
    counters_free(&s->counters);
    configurations_free(&s->seen);
    running_free(&s->running);
    free(s->mask);
    free(s);
}

void lockcheck_search_free(Found *found) {
    free(found->path);
    free(found->states);
    free(found->held);
    found->path = found->states = NULL;
    found->held = NULL;
}
