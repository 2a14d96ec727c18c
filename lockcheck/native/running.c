#include "running.h"

#include <stdlib.h>
#include <string.h>

static Names *names_of(Running *r, int32_t name) {
    return r->plan->looks[r->plan->kind[name]] ? &r->lookers : &r->writers;
}

static int32_t place_of(const Names *names, int32_t name) {
    int32_t low = 0, high = names->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (names->names[middle] < name)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(Names *names, int32_t name) {
    int32_t at = place_of(names, name);
    size_t rest = (size_t)(names->count++ - at);
    memmove(names->names + at + 1, names->names + at, rest * sizeof *names->names);
    names->names[at] = name;
}

static void remove_name(Names *names, int32_t name) {
    int32_t at = place_of(names, name);
    size_t rest = (size_t)(--names->count - at);
    memmove(names->names + at, names->names + at + 1, rest * sizeof *names->names);
}

static int is_first_maybe(const Running *r, int32_t number, int32_t when) {
    return r->maybe_when[r->maybe_first[number]] == when;
}

static void call(Running *r, int32_t since, int32_t until) {
    for (int32_t when = since; when < until; when++) {
        int32_t name = r->plan->calls[when];
        if (name >= 0)
            insert(names_of(r, name), name);
        else if (is_first_maybe(r, -1 - name, when))
            r->maybes.names[r->maybes.count++] = -1 - name;
    }
}

static void uncall(Running *r, int32_t since, int32_t until) {
    for (int32_t when = until; when-- > since;) {
        int32_t name = r->plan->calls[when];
        if (name >= 0)
            remove_name(names_of(r, name), name);
        else if (is_first_maybe(r, -1 - name, when))
            r->maybes.count--;
    }
}

void running_move(Running *r, int32_t place) {
    const int32_t *called = r->plan->called;
    for (; r->place < place; r->place++) {
        remove_name(names_of(r, r->place), r->place);
        call(r, called[r->place], called[r->place + 1]);
    }
    for (; r->place > place; r->place--) {
        uncall(r, called[r->place - 1], called[r->place]);
        insert(names_of(r, r->place - 1), r->place - 1);
    }
}

/* Sorts unconfirmed operations by class, and within a class by the place among the calls. */
static void sort_maybes(Running *r, Exhausted *exhausted) {
    const Plan *plan = r->plan;
    int32_t *first = r->maybe_first =
        lockcheck_zeroed(exhausted, (size_t)plan->maybes + 2, sizeof *first);
    for (int32_t i = 0; i < plan->calls_count; i++)
        if (plan->calls[i] < 0) first[-1 - plan->calls[i] + 2]++;
    for (int32_t number = 0; number < plan->maybes; number++) first[number + 2] += first[number + 1];
    size_t count = (size_t)first[plan->maybes + 1];
    r->maybe_when = lockcheck_zeroed(exhausted, count, sizeof *r->maybe_when);
    for (int32_t i = 0; i < plan->calls_count; i++)
        if (plan->calls[i] < 0) r->maybe_when[first[-1 - plan->calls[i] + 1]++] = i;
}

void running_begin(Running *r, Exhausted *exhausted, const Plan *plan) {
    r->plan = plan;
    /* One more than ever run: the next may be called before the last one is removed. */
    size_t room = (size_t)plan->slots + 1;
    r->writers.names = lockcheck_zeroed(exhausted, room, sizeof(int32_t));
    r->lookers.names = lockcheck_zeroed(exhausted, room, sizeof(int32_t));
    r->maybes.names = lockcheck_zeroed(exhausted, (size_t)plan->maybes, sizeof(int32_t));
    r->when = lockcheck_zeroed(exhausted, (size_t)plan->returns, sizeof *r->when);
    for (int32_t i = 0; i < plan->calls_count; i++)
        if (plan->calls[i] >= 0) r->when[plan->calls[i]] = i;
    sort_maybes(r, exhausted);
    call(r, 0, plan->called[0]);
}

void running_free(Running *r) {
    free(r->writers.names);
    free(r->lookers.names);
    free(r->maybes.names);
    free(r->when);
    free(r->maybe_first);
    free(r->maybe_when);
}
