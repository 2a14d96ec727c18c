/* A history in JSON Lines, into columns.
 *
 * Reads events as lockcheck writes them, in any order of their fields, pairs each answer with its
 * invocation, and appends one row per operation. It refuses every line that it is not sure of:
 * the caller then reads the file event by event, which is slow, and reports what is wrong. So
 * nothing here has to explain an error, and nothing here may accept what that reader refuses.
 *
 * Lines that are not a client's operation (faults, notices) are left to the caller, by their
 * offsets.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RENEW = 2, CAS = 5, OTHER = 8 }; /* as in OPERATIONS */
enum { NO_OP_OPEN = -1, NOTHING = -1, DEEPEST = 64, LONGEST_LINE = 1 << 20 };
enum { OK = 0, FAIL = 1, INFO = 2, INVOKE = 3 };

static const int64_t NEVER = (int64_t)1 << 61;
static const int64_t NO_TOKEN = INT64_MIN;
static const int64_t LATEST = ((int64_t)1 << 61) - ((int64_t)1 << 53);  /* as LATEST_NS in event.py */
static const int64_t SINCE_1970 = (int64_t)1 << 57;

/* --- columns that grow --------------------------------------------------------------------- */

/* The first are those of the table, in its order (history/table.py); then see history/columns.py. */
enum column {
    F, OUTCOME, START, END, PROCESS, KEY, ARGUMENT, SECOND, RESULT, TOKEN, TTL_MS, OWNER, NODE,
    INVOKED_AT, ANSWERED_AT, SPECIAL_AT, SEEN_LAST, SYMBOL_AT,
    ODD_SYMBOL,
    NUMBERED, NUMBER_, BASED, BASE, /* rows with a storage's number, and with a base */
    LEDGER_AT, LEDGER_F, LEDGER_OUTCOME, LEDGER_SEQ, LEDGER_OF, LEDGER_KEY, LEDGER_VALUE, LEDGER_BASE, LEDGER_WHY,
    COLUMNS
};

static const size_t WIDTH[COLUMNS] = {
    [F] = 1, [OUTCOME] = 1, [START] = 8, [END] = 8, [PROCESS] = 4, [KEY] = 4, [ARGUMENT] = 4,
    [SECOND] = 4, [RESULT] = 4, [TOKEN] = 8, [TTL_MS] = 4, [OWNER] = 4, [NODE] = 4, [INVOKED_AT] = 8,
    [ANSWERED_AT] = 8, [SPECIAL_AT] = 8, [SEEN_LAST] = 8, [SYMBOL_AT] = 8,
    [ODD_SYMBOL] = 4, [NUMBERED] = 8, [NUMBER_] = 8, [BASED] = 8, [BASE] = 4, [LEDGER_AT] = 8,
    [LEDGER_F] = 1, [LEDGER_OUTCOME] = 1, [LEDGER_SEQ] = 8, [LEDGER_OF] = 4, [LEDGER_KEY] = 4,
    [LEDGER_VALUE] = 4, [LEDGER_BASE] = 4, [LEDGER_WHY] = 4,
};

typedef struct {
    char *data;
    int64_t length, room; /* in elements */
} Column;

typedef struct {
    const char *at;
    int64_t length;
} Span;

/* --- one line ------------------------------------------------------------------------------ */

enum kind { ABSENT = 0, NULLED, TEXT, INTEGER, NUMBER, ODD };

typedef struct {
    Span raw; /* as in the line, with the quotes of a string */
    int64_t integer;
    enum kind kind;
} Value;

enum field {
    TIME, PROCESS_, TYPE, F_, KEY_, VALUE_, NODE_, TOKEN_, SEQ_, TTL_, SHARED_, ERROR_, BASE_,
    VALID_, FAULT_, OF_, REFUSED_, BLIND_, UNSAID_, REST, FIELDS
};

/* The kinds that each field may have, besides absent. An unknown field may be anything. */
#define MAY(kind) (1 << (kind))
static const int ALLOWED[FIELDS] = {
    [TIME] = MAY(INTEGER),
    [PROCESS_] = MAY(INTEGER) | MAY(TEXT),
    [TYPE] = MAY(TEXT),
    [F_] = MAY(TEXT),
    [KEY_] = MAY(TEXT) | MAY(NULLED),
    [VALUE_] = ~0,
    [NODE_] = MAY(TEXT) | MAY(NULLED),
    [TOKEN_] = MAY(INTEGER) | MAY(NULLED),
    [SEQ_] = MAY(INTEGER) | MAY(NULLED),
    [TTL_] = MAY(INTEGER) | MAY(NULLED),
    [SHARED_] = 0, /* shared locks are judged event by event */
    [ERROR_] = MAY(TEXT) | MAY(NULLED),
    [BASE_] = ~0,
    [VALID_] = MAY(INTEGER) | MAY(NUMBER) | MAY(NULLED),
    [FAULT_] = MAY(INTEGER) | MAY(NULLED),
    [OF_] = MAY(INTEGER) | MAY(TEXT) | MAY(NULLED),
    [REFUSED_] = MAY(TEXT) | MAY(NULLED),
    [BLIND_] = 0, /* the same: releases that did not check the owner */
    [UNSAID_] = 0, /* the same: releases whose answer says nothing */
    [REST] = ~0,
};

typedef struct {
    const char *at, *end;
} Cursor;

enum { PLACES = 8 };

typedef struct {
    char name[12]; /* with its quotes and the colon */
    int8_t length;
    enum field field;
} Expected;

static void skip_blanks(Cursor *cursor) {
    while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\t' || *cursor->at == '\r'))
        cursor->at++;
}

static int take(Cursor *cursor, char wanted) {
    if (cursor->at < cursor->end && *cursor->at == wanted) {
        cursor->at++;
        return 1;
    }
    return 0;
}

/* Eight bytes at once: none of them a quote, a backslash, a control character, or beyond ASCII. */
static int eight_plain(const char *at) {
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t word;
    memcpy(&word, at, 8);
    uint64_t quote = word ^ (ones * '"'), backslash = word ^ (ones * '\\');
    uint64_t found = (quote - ones) | (backslash - ones) | (word - ones * 0x20) | word;
    return (found & tops) == 0;
}

/* A string that needs no decoding: no escapes, no control characters, ASCII. */
static int plain_text(Cursor *cursor) {
    if (!take(cursor, '"')) return 0;
    const char *at = cursor->at;
    while (cursor->end - at >= 8 && eight_plain(at)) at += 8;
    while (at < cursor->end && *at != '"') {
        unsigned char c = (unsigned char)*at;
        if (c < 0x20 || c >= 0x80 || c == '\\') return 0;
        at++;
    }
    cursor->at = at;
    return take(cursor, '"');
}

static int digit(const Cursor *cursor) {
    return cursor->at < cursor->end && (unsigned char)(*cursor->at - '0') < 10;
}

/* An integer of at most 19 digits that fits, or any other number. */
static int number(Cursor *cursor, Value *value) {
    int negative = take(cursor, '-'), digits = 0;
    uint64_t integer = 0;
    const char *first = cursor->at;
    while (digit(cursor)) {
        if (++digits <= 19) integer = integer * 10 + (uint64_t)(*cursor->at - '0');
        cursor->at++;
    }
    if (digits == 0 || (digits > 1 && *first == '0')) return 0;
    value->kind = digits <= 19 && integer <= INT64_MAX ? INTEGER : NUMBER;
    if (value->kind == INTEGER) value->integer = negative ? -(int64_t)integer : (int64_t)integer;
    if (negative && integer == 0) value->kind = NUMBER; /* -0 would be written differently again */
    if (take(cursor, '.')) {
        value->kind = NUMBER;
        if (!digit(cursor)) return 0;
        while (digit(cursor)) cursor->at++;
    }
    if (cursor->at < cursor->end && (*cursor->at == 'e' || *cursor->at == 'E')) {
        value->kind = NUMBER;
        cursor->at++;
        if (!take(cursor, '-')) take(cursor, '+');
        if (!digit(cursor)) return 0;
        while (digit(cursor)) cursor->at++;
    }
    return 1;
}

static int word(Cursor *cursor, const char *wanted, int64_t length) {
    if (cursor->end - cursor->at < length || memcmp(cursor->at, wanted, (size_t)length) != 0) return 0;
    cursor->at += length;
    return 1;
}

static int value_at(Cursor *cursor, Value *value, int depth);

static int list(Cursor *cursor, int depth) {
    Value inner;
    skip_blanks(cursor);
    if (take(cursor, ']')) return 1;
    do {
        skip_blanks(cursor);
        if (!value_at(cursor, &inner, depth + 1)) return 0;
        skip_blanks(cursor);
    } while (take(cursor, ','));
    return take(cursor, ']');
}

static int object(Cursor *cursor, int depth) {
    Value inner;
    skip_blanks(cursor);
    if (take(cursor, '}')) return 1;
    do {
        skip_blanks(cursor);
        if (!plain_text(cursor)) return 0;
        skip_blanks(cursor);
        if (!take(cursor, ':')) return 0;
        skip_blanks(cursor);
        if (!value_at(cursor, &inner, depth + 1)) return 0;
        skip_blanks(cursor);
    } while (take(cursor, ','));
    return take(cursor, '}');
}

static int value_at(Cursor *cursor, Value *value, int depth) {
    if (cursor->at >= cursor->end || depth > DEEPEST) return 0;
    const char *from = cursor->at;
    int fine;
    value->kind = ODD;
    switch (*from) {
    case '"':
        fine = plain_text(cursor);
        value->kind = TEXT;
        break;
    case 'n':
        fine = word(cursor, "null", 4);
        value->kind = NULLED;
        break;
    case 't': fine = word(cursor, "true", 4); break;
    case 'f': fine = word(cursor, "false", 5); break;
    case '[':
        cursor->at++;
        fine = list(cursor, depth);
        break;
    case '{':
        cursor->at++;
        fine = object(cursor, depth);
        break;
    default: fine = number(cursor, value);
    }
    value->raw = (Span){from, cursor->at - from};
    return fine;
}

#define IS(text) (name.length == sizeof(text) - 1 && memcmp(name.at, text, sizeof(text) - 1) == 0)

static enum field field_named(Span name) {
    switch (name.at[0]) {
    case 't':
        if (IS("time")) return TIME;
        if (IS("type")) return TYPE;
        if (IS("token")) return TOKEN_;
        if (IS("ttl_ms")) return TTL_;
        return REST;
    case 'p': return IS("process") ? PROCESS_ : REST;
    case 'f':
        if (IS("f")) return F_;
        return IS("fault") ? FAULT_ : REST;
    case 'k': return IS("key") ? KEY_ : REST;
    case 'v':
        if (IS("value")) return VALUE_;
        return IS("valid_ms") ? VALID_ : REST;
    case 'e': return IS("error") ? ERROR_ : REST;
    case 'b':
        if (IS("base")) return BASE_;
        return IS("blind") ? BLIND_ : REST;
    case 'o': return IS("of") ? OF_ : REST;
    case 'n': return IS("node") ? NODE_ : REST;
    case 'r': return IS("refused") ? REFUSED_ : REST;
    case 's':
        if (IS("seq")) return SEQ_;
        return IS("shared") ? SHARED_ : REST;
    case 'u': return IS("unsaid") ? UNSAID_ : REST;
    default: return REST;
    }
}

/* The field whose name and colon come next; FIELDS if there is none. Names come in nearly the same
 * order in every line, so the field that was in this place before is tried first. */
static enum field name_at(Cursor *cursor, Expected *expected) {
    if (expected->length && cursor->end - cursor->at >= 16 &&
        memcmp(cursor->at, expected->name, (size_t)expected->length) == 0) {
        cursor->at += expected->length;
        return expected->field;
    }
    const char *from = cursor->at;
    if (!plain_text(cursor) || cursor->at - from < 3) return FIELDS;
    enum field field = field_named((Span){from + 1, cursor->at - from - 2});
    skip_blanks(cursor);
    if (!take(cursor, ':')) return FIELDS;
    if (cursor->at - from <= (int64_t)sizeof expected->name) {
        expected->length = (int8_t)(cursor->at - from);
        memcpy(expected->name, from, (size_t)expected->length);
        expected->field = field;
    }
    return field;
}

/* Reads the fields of a line, each at most once; 0 if the line is not like that. */
static int fields_of(Cursor *cursor, Value *fields, Expected *expected) {
    if (!take(cursor, '{')) return 0;
    int place = 0;
    do {
        skip_blanks(cursor);
        enum field field = name_at(cursor, &expected[place]);
        if (field == FIELDS) return 0;
        if (place < PLACES - 1) place++;
        skip_blanks(cursor);
        if (field != REST && fields[field].kind != ABSENT) return 0;
        if (!value_at(cursor, &fields[field], 0)) return 0;
        if (!(MAY(fields[field].kind) & ALLOWED[field])) return 0;
        skip_blanks(cursor);
    } while (take(cursor, ','));
    if (!take(cursor, '}')) return 0;
    skip_blanks(cursor);
    return cursor->at == cursor->end;
}

/* --- the reader and its state --------------------------------------------------------------- */

typedef struct {
    Column columns[COLUMNS];
    /* symbols: their texts one after the other, and a hash table of numbers + 1 */
    char *texts;
    int64_t texts_length, texts_room;
    int32_t *slots;
    int64_t slots_room;
    int32_t last_key_number, last_node_number; /* of the line before: mostly the same */
    Expected expected[PLACES];
    /* by the number of a process's symbol: its open operation */
    int64_t *open;
    int64_t open_room;
    int64_t time, read;
    int64_t began; /* time 0, if times count from 1970 */
    int64_t events;
    int32_t has_foreign_owners; /* operations other than renewals concern another's hold */
} Reader;

static int grow(Reader *reader, enum column which) {
    Column *column = &reader->columns[which];
    int64_t room = column->room ? column->room * 2 : 1024;
    char *data = realloc(column->data, (size_t)room * WIDTH[which]);
    if (data == NULL) return 0;
    column->data = data;
    column->room = room;
    return 1;
}

#define PUT(reader, which, type, value)                                                           \
    do {                                                                                          \
        Column *put_column = &(reader)->columns[which];                                           \
        if (put_column->length == put_column->room && !grow(reader, which)) return 0;             \
        ((type *)put_column->data)[put_column->length++] = (type)(value);                         \
    } while (0)

#define AT(reader, which, type, row) (((type *)(reader)->columns[which].data)[row])

/* Columns that are empty in most histories have no rows before the first value. */
static const enum column RARE[] = {ARGUMENT, SECOND, RESULT, TTL_MS, NODE, OWNER};

/* Extends a column to this many rows with its usual value: NOTHING, or the process as the owner. */
static int fill(Reader *reader, enum column which, int64_t rows) {
    for (int64_t row = reader->columns[which].length; row < rows; row++)
        PUT(reader, which, int32_t, which == OWNER ? AT(reader, PROCESS, int32_t, row) : NOTHING);
    return 1;
}

static int put_rare(Reader *reader, enum column which, int64_t row, int32_t value, int32_t usual) {
    if (value == usual && reader->columns[which].length == 0) return 1;
    if (!fill(reader, which, row + 1)) return 0;
    AT(reader, which, int32_t, row) = value;
    return 1;
}

/* --- symbols ------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *text, int64_t length) {
    uint64_t hash = 0x9E3779B97F4A7C15u ^ (uint64_t)length;
    while (length >= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
        text += 8;
        length -= 8;
    }
    uint64_t word = 0;
    memcpy(&word, text, (size_t)length);
    hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
    return hash ^ (hash >> 29);
}

static int64_t symbol_count(const Reader *reader) { return reader->columns[SYMBOL_AT].length; }

static Span symbol_text(const Reader *reader, int64_t number) {
    int64_t from = AT(reader, SYMBOL_AT, int64_t, number);
    int64_t to = number + 1 < symbol_count(reader) ? AT(reader, SYMBOL_AT, int64_t, number + 1)
                                                   : reader->texts_length;
    return (Span){reader->texts + from, to - from};
}

static int rehash(Reader *reader) {
    int64_t room = reader->slots_room ? reader->slots_room * 2 : 4096;
    int32_t *slots = calloc((size_t)room, sizeof *slots);
    if (slots == NULL) return 0;
    for (int64_t number = 0; number < symbol_count(reader); number++) {
        Span text = symbol_text(reader, number);
        uint64_t slot = hash_of(text.at, text.length) & (uint64_t)(room - 1);
        while (slots[slot]) slot = (slot + 1) & (uint64_t)(room - 1);
        slots[slot] = (int32_t)number + 1;
    }
    free(reader->slots);
    reader->slots = slots;
    reader->slots_room = room;
    return 1;
}

static int keep_text(Reader *reader, Span text) {
    if (reader->texts_length + text.length > reader->texts_room) {
        int64_t room = reader->texts_room ? reader->texts_room : 4096;
        while (room < reader->texts_length + text.length) room *= 2;
        char *texts = realloc(reader->texts, (size_t)room);
        if (texts == NULL) return 0;
        reader->texts = texts;
        reader->texts_room = room;
    }
    memcpy(reader->texts + reader->texts_length, text.at, (size_t)text.length);
    reader->texts_length += text.length;
    return 1;
}

/* The symbol of a text; -2 without memory. */
static int32_t number_of(Reader *reader, Span text) {
    if (2 * (symbol_count(reader) + 1) > reader->slots_room && !rehash(reader)) return -2;
    uint64_t mask = (uint64_t)(reader->slots_room - 1);
    uint64_t slot = hash_of(text.at, text.length) & mask;
    for (; reader->slots[slot]; slot = (slot + 1) & mask) {
        Span known = symbol_text(reader, reader->slots[slot] - 1);
        if (known.length == text.length && memcmp(known.at, text.at, (size_t)text.length) == 0)
            return reader->slots[slot] - 1;
    }
    int64_t number = symbol_count(reader);
    if (number >= INT32_MAX - 1) return -2;
    Column *at = &reader->columns[SYMBOL_AT];
    if (at->length == at->room && !grow(reader, SYMBOL_AT)) return -2;
    int64_t from = reader->texts_length;
    if (!keep_text(reader, text)) return -2;
    ((int64_t *)at->data)[at->length++] = from;
    reader->slots[slot] = (int32_t)number + 1;
    return (int32_t)number;
}

/* --- one event ----------------------------------------------------------------------------- */

static int is(const Value *value, const char *text) {
    int64_t length = (int64_t)strlen(text);
    return value->kind == TEXT && value->raw.length == length + 2 &&
           memcmp(value->raw.at + 1, text, (size_t)length) == 0;
}

static const char *const OPERATIONS[OTHER] = {
    "acquire", "release", "renew", "read", "write", "cas", "add", "run",
};

static int operation_named(const Value *f) {
    for (int operation = 0; operation < OTHER; operation++)
        if (f->raw.at[1] == OPERATIONS[operation][0] && is(f, OPERATIONS[operation]))
            return operation;
    return OTHER;
}

static int outcome_named(const Value *type) {
    if (type->kind != TEXT) return -1;
    switch (type->raw.at[1]) {
    case 'o': return is(type, "ok") ? OK : -1;
    case 'f': return is(type, "fail") ? FAIL : -1;
    default:
        if (is(type, "invoke")) return INVOKE;
        return is(type, "info") ? INFO : -1;
    }
}

/* The same as `Refusal` in event.py. */
static int is_refusal(const Value *value) {
    return is(value, "held") || is(value, "gone") || is(value, "unavailable") || is(value, "not-owner");
}

/* The symbol of a value; -2 on failure. */
static int32_t number_of_value(Reader *reader, const Value *value) {
    if (value->kind == ABSENT || value->kind == NULLED) return NOTHING;
    int32_t number = number_of(reader, value->raw);
    if (value->kind == ODD || value->kind == NUMBER) {
        Column *odd = &reader->columns[ODD_SYMBOL];
        if (odd->length == odd->room && !grow(reader, ODD_SYMBOL)) return -2;
        ((int32_t *)odd->data)[odd->length++] = number;
    }
    return number;
}

/* The same for a value that mostly is the same as in the line before. */
static int32_t number_again(Reader *reader, const Value *value, int32_t *last_number) {
    if (value->kind == ABSENT || value->kind == NULLED) return NOTHING;
    if (*last_number >= 0) {
        Span last = symbol_text(reader, *last_number);
        if (last.length == value->raw.length && memcmp(last.at, value->raw.at, (size_t)last.length) == 0)
            return *last_number;
    }
    return *last_number = number_of(reader, value->raw);
}

static int special(Reader *reader, int64_t offset) {
    PUT(reader, SPECIAL_AT, int64_t, offset);
    return 1;
}

/* Makes room for a process: `open` and SEEN_LAST have an entry for each symbol. */
static int know_process(Reader *reader, int32_t process) {
    if (process >= reader->open_room) {
        int64_t room = reader->open_room ? reader->open_room : 1024;
        while (room <= process) room *= 2;
        int64_t *open = realloc(reader->open, (size_t)room * sizeof *open);
        if (open == NULL) return 0;
        for (int64_t i = reader->open_room; i < room; i++) open[i] = NO_OP_OPEN;
        reader->open = open;
        reader->open_room = room;
    }
    while (reader->columns[SEEN_LAST].length <= process) PUT(reader, SEEN_LAST, int64_t, -LATEST);
    return 1;
}

/* Reads the pair of a cas: two values in a list that need no decoding. */
static int pair(Value *list_, Value *one, Value *two) {
    Cursor cursor = {list_->raw.at, list_->raw.at + list_->raw.length};
    if (list_->kind != ODD || !take(&cursor, '[')) return 0;
    skip_blanks(&cursor);
    if (!value_at(&cursor, one, 1)) return 0;
    skip_blanks(&cursor);
    if (!take(&cursor, ',')) return 0;
    skip_blanks(&cursor);
    if (!value_at(&cursor, two, 1)) return 0;
    skip_blanks(&cursor);
    return take(&cursor, ']') && cursor.at == cursor.end;
}

static int invoked(Reader *reader, Value *fields, int32_t process, int operation, int64_t offset) {
    int64_t row = reader->columns[F].length;
    Value one = fields[VALUE_], two = {{NULL, 0}, 0, ABSENT};
    if (operation == CAS && !pair(&fields[VALUE_], &one, &two)) {
        one = fields[VALUE_];
        two.kind = ABSENT;
    }
    int32_t key = number_again(reader, &fields[KEY_], &reader->last_key_number);
    int32_t node = number_again(reader, &fields[NODE_], &reader->last_node_number);
    int32_t argument = number_of_value(reader, &one), second = number_of_value(reader, &two);
    int32_t owner = process;
    int32_t base = number_of_value(reader, &fields[BASE_]);
    if (fields[OF_].kind == INTEGER || fields[OF_].kind == TEXT) {
        if (operation == RENEW) owner = number_of(reader, fields[OF_].raw);
        else reader->has_foreign_owners = 1;
    }
    if (base < -1) return 0;
    if (key < -1 || node < -1 || argument < -1 || second < -1 || owner < 0) return 0;
    reader->open[process] = row;
    if (base != NOTHING) {
        PUT(reader, BASED, int64_t, row);
        PUT(reader, BASE, int32_t, base);
    }
    PUT(reader, F, int8_t, operation);
    PUT(reader, OUTCOME, int8_t, INFO);
    PUT(reader, START, int64_t, fields[TIME].integer);
    PUT(reader, END, int64_t, NEVER);
    PUT(reader, PROCESS, int32_t, process);
    PUT(reader, KEY, int32_t, key);
    PUT(reader, TOKEN, int64_t, NO_TOKEN);
    int32_t ttl_ms = fields[TTL_].kind == INTEGER ? (int32_t)fields[TTL_].integer : NOTHING;
    if (!put_rare(reader, ARGUMENT, row, argument, NOTHING) ||
        !put_rare(reader, SECOND, row, second, NOTHING) ||
        !put_rare(reader, TTL_MS, row, ttl_ms, NOTHING) ||
        !put_rare(reader, OWNER, row, owner, process) || !put_rare(reader, NODE, row, node, NOTHING))
        return 0;
    PUT(reader, INVOKED_AT, int64_t, offset);
    PUT(reader, ANSWERED_AT, int64_t, -1);
    return 1;
}

static int answered(Reader *reader, Value *fields, int64_t row, int outcome, int64_t offset) {
    int32_t result = number_of_value(reader, &fields[VALUE_]);
    if (result < -1) return 0;
    AT(reader, OUTCOME, int8_t, row) = (int8_t)outcome;
    if (outcome != INFO) AT(reader, END, int64_t, row) = fields[TIME].integer;
    if (outcome == OK && fields[TOKEN_].kind == INTEGER)
        AT(reader, TOKEN, int64_t, row) = fields[TOKEN_].integer;
    if (fields[SEQ_].kind == INTEGER) {
        PUT(reader, NUMBERED, int64_t, row);
        PUT(reader, NUMBER_, int64_t, fields[SEQ_].integer);
    }
    if (!put_rare(reader, RESULT, row, result, NOTHING)) return 0;
    AT(reader, ANSWERED_AT, int64_t, row) = offset;
    return 1;
}

/* Adds the storage's record of a read or write that it served. */
static int ledger_entry(Reader *reader, Value *fields, int outcome, int64_t offset) {
    const Value *of = &fields[OF_];
    if (fields[SEQ_].kind != INTEGER || (of->kind != INTEGER && of->kind != TEXT)) return 0;
    int32_t whose = number_of(reader, of->raw);
    int32_t key = number_again(reader, &fields[KEY_], &reader->last_key_number);
    int32_t value = number_of_value(reader, &fields[VALUE_]);
    int32_t base = number_of_value(reader, &fields[BASE_]);
    int32_t why = number_of_value(reader, &fields[ERROR_]);
    if (whose < 0 || key < -1 || value < -1 || base < -1 || why < -1) return 0;
    PUT(reader, LEDGER_AT, int64_t, offset);
    PUT(reader, LEDGER_F, int8_t, operation_named(&fields[F_]));
    PUT(reader, LEDGER_OUTCOME, int8_t, outcome);
    PUT(reader, LEDGER_SEQ, int64_t, fields[SEQ_].integer);
    PUT(reader, LEDGER_OF, int32_t, whose);
    PUT(reader, LEDGER_KEY, int32_t, key);
    PUT(reader, LEDGER_VALUE, int32_t, value);
    PUT(reader, LEDGER_BASE, int32_t, base);
    PUT(reader, LEDGER_WHY, int32_t, why);
    return 1;
}

/* Adds an event of a client, by the same rules as `Assembly` in assembly.py. */
static int of_client(Reader *reader, Value *fields, int outcome, int64_t offset) {
    int operation = operation_named(&fields[F_]);
    int32_t process = number_of(reader, fields[PROCESS_].raw);
    if (process < 0 || !know_process(reader, process)) return 0;
    AT(reader, SEEN_LAST, int64_t, process) = fields[TIME].integer;
    int64_t row = reader->open[process];
    if (outcome == INVOKE) {
        if (row != NO_OP_OPEN || operation == OTHER) return 0;
        return invoked(reader, fields, process, operation, offset);
    }
    if (row != NO_OP_OPEN && operation != OTHER && AT(reader, F, int8_t, row) == operation) {
        reader->open[process] = NO_OP_OPEN;
        return answered(reader, fields, row, outcome, offset);
    }
    return outcome == INFO && operation == OTHER ? special(reader, offset) : 0;
}

static int line(Reader *reader, Span text, int64_t offset) {
    Value fields[FIELDS];
    for (int field = 0; field < FIELDS; field++) fields[field].kind = ABSENT;
    Cursor cursor = {text.at, text.at + text.length};
    skip_blanks(&cursor);
    if (cursor.at == cursor.end) return 1;
    if (!fields_of(&cursor, fields, reader->expected)) return 0;
    int outcome = outcome_named(&fields[TYPE]);
    Value *time = &fields[TIME];
    const Value *ttl = &fields[TTL_];
    if (time->kind == ABSENT || fields[PROCESS_].kind == ABSENT || fields[F_].kind == ABSENT)
        return 0;
    if (outcome < 0 || time->integer > LATEST || time->integer < -LATEST) return 0;
    if (ttl->kind == INTEGER && (ttl->integer < 0 || ttl->integer > INT32_MAX)) return 0;
    if (fields[REFUSED_].kind == TEXT && !is_refusal(&fields[REFUSED_])) return 0;
    if (reader->events == 0 && time->integer >= SINCE_1970) reader->began = time->integer;
    time->integer -= reader->began;
    if (reader->events++ > 0 && time->integer < reader->time) return 0;
    reader->time = time->integer;
    const Value *process = &fields[PROCESS_], *f = &fields[F_];
    if (is(process, "storage")) return ledger_entry(reader, fields, outcome, offset);
    if (is(process, "nemesis") || is(process, "run")) return special(reader, offset);
    if (is(f, "terms") || is(f, "clock-step") || is(f, "stall")) return special(reader, offset);
    return of_client(reader, fields, outcome, offset);
}

/* --- the interface ------------------------------------------------------------------------ */

void *lockcheck_reader_new(void) {
    Reader *reader = calloc(1, sizeof *reader);
    if (reader != NULL) reader->last_key_number = reader->last_node_number = -1;
    return reader;
}

void lockcheck_reader_free(void *given) {
    Reader *reader = given;
    if (reader == NULL) return;
    for (int which = 0; which < COLUMNS; which++) free(reader->columns[which].data);
    free(reader->texts);
    free(reader->slots);
    free(reader->open);
    free(reader);
}

/* Reads the whole lines of a piece, and of the last piece also a line without its end. Returns the
 * number of bytes read, or -1 if the reader refuses the history. */
int64_t lockcheck_reader_feed(void *given, const char *piece, int64_t length, int32_t last) {
    Reader *reader = given;
    const char *at = piece, *end = piece + length;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (newline == NULL && !last) break;
        const char *stop = newline == NULL ? end : newline;
        int64_t offset = reader->read + (at - piece);
        if (stop - at > LONGEST_LINE || !line(reader, (Span){at, stop - at}, offset)) return -1;
        at = newline == NULL ? end : newline + 1;
    }
    reader->read += at - piece;
    for (size_t i = 0; last && i < sizeof RARE / sizeof *RARE; i++)
        if (reader->columns[RARE[i]].length && !fill(reader, RARE[i], reader->columns[F].length))
            return -1;
    return at - piece;
}

int32_t lockcheck_reader_has_foreign_owners(const void *given) {
    return ((const Reader *)given)->has_foreign_owners;
}
int64_t lockcheck_reader_time(const void *given) { return ((const Reader *)given)->time; }
int64_t lockcheck_reader_began(const void *given) { return ((const Reader *)given)->began; }
int64_t lockcheck_reader_events(const void *given) { return ((const Reader *)given)->events; }

int64_t lockcheck_reader_length(const void *given, int32_t which) {
    return ((const Reader *)given)->columns[which].length;
}

const void *lockcheck_reader_column(const void *given, int32_t which) {
    return ((const Reader *)given)->columns[which].data;
}

/* The text of a symbol, and the symbol of a text. */
const char *lockcheck_reader_text(const void *given, int32_t number, int64_t *length) {
    Span text = symbol_text(given, number);
    *length = text.length;
    return text.at;
}

int32_t lockcheck_reader_number(void *given, const char *text, int64_t length) {
    return number_of(given, (Span){text, length});
}
