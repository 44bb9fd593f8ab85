/* Parses JSON text, for results of calls and for `JSON.parse`. It accepts only valid JSON: for any
   other text, the caller uses the engine's parser, which has the error messages.

   Objects with the same members often follow each other. So the members of the last objects are
   remembered, with the resulting shape: the next object with the same members is created from that
   shape, without looking up a name. Repeated short strings share one string. */

enum json_end {
    JSON_DONE,
    JSON_UNSURE, /* the engine must parse the text */
    JSON_TOO_DEEP,
    JSON_THROWN,
};

#define JSON_MEMBERS_MAX 32 /* of a remembered object */
#define JSON_KINDS 4        /* remembered for each depth */
#define JSON_DEPTHS 8       /* deeper objects are not remembered */
#define JSON_SHORT_MAX 16   /* bytes of a string that is remembered */
#define JSON_SHORTS 256
#define JSON_LARGE (16 * 1024)
#define JSON_PARSE_DEPTH_MAX 512 /* for `JSON.parse`, as in the other guest */

struct json_key {
    const uint8_t *text;
    uint32_t length;
    JSAtom atom;
};

/* A kind of objects: those with these members, in this order. */
struct json_kind {
    JSShape *shape;
    int count;
    struct json_key keys[JSON_MEMBERS_MAX];
};

struct json_reader {
    JSContext *ctx;
    const uint8_t *start, *at, *end;
    enum json_end failed;
    uint32_t depth, depth_max;
    /* Values of unfinished arrays and objects, and keys of unfinished objects of unknown kind. */
    JSValue *values;
    size_t values_used, values_room;
    struct json_key *keys;
    size_t keys_used, keys_room;
    struct json_kind *kinds[JSON_DEPTHS][JSON_KINDS];
    uint8_t next_kind[JSON_DEPTHS];
    /* Strings by hash; only for large input. */
    JSString **shorts;
};

static JSValue json_value(struct json_reader *r);

static JSValue json_fail(struct json_reader *r, enum json_end why)
{
    if (r->failed == JSON_DONE)
        r->failed = why;
    return JS_EXCEPTION;
}

static inline uint8_t json_space(struct json_reader *r)
{
    const uint8_t *p = r->at;
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
        p++;
    r->at = p;
    return *p;
}

/* Makes room for one more item on a stack; false if there is no memory. */
static no_inline bool json_grow(JSContext *ctx, void **stack, size_t *room, size_t size)
{
    size_t wanted = *room ? *room * 2 : 64;
    void *grown = js_realloc(ctx, *stack, wanted * size);
    if (!grown)
        return false;
    *stack = grown;
    *room = wanted;
    return true;
}

static inline bool json_push(struct json_reader *r, JSValue value)
{
    if (unlikely(r->values_used == r->values_room) &&
        !json_grow(r->ctx, (void **)&r->values, &r->values_room, sizeof(JSValue))) {
        JS_FreeValue(r->ctx, value);
        json_fail(r, JSON_THROWN);
        return false;
    }
    r->values[r->values_used++] = value;
    return true;
}

/* Takes ownership of the key's atom. */
static inline bool json_push_key(struct json_reader *r, struct json_key key)
{
    if (unlikely(r->keys_used == r->keys_room) &&
        !json_grow(r->ctx, (void **)&r->keys, &r->keys_room, sizeof(struct json_key))) {
        JS_FreeAtom(r->ctx, key.atom);
        json_fail(r, JSON_THROWN);
        return false;
    }
    r->keys[r->keys_used++] = key;
    return true;
}

/* Returns the first byte from here on that cannot be part of a plain string: the closing quote, an
   escape, a control character, or a non-ASCII byte. The input is followed by a zero. */
static inline const uint8_t *json_plain_end(const uint8_t *p, const uint8_t *end)
{
    const uint64_t ones = 0x0101010101010101ULL, tops = 0x8080808080808080ULL;
    while (end - p >= 8) {
        uint64_t word, quote, escape, found;
        memcpy(&word, p, 8);
        quote = word ^ (ones * '"');
        escape = word ^ (ones * '\\');
        found = ((quote - ones) & ~quote) | ((escape - ones) & ~escape) |
                ((word - ones * 0x20) & ~word) | word;
        found &= tops;
        if (found)
            return p + (__builtin_ctzll(found) >> 3);
        p += 8;
    }
    while (*p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* Like memcpy, which is a call into the host here. */
static inline void json_copy(uint8_t *to, const uint8_t *from, size_t length)
{
    if (length > 256) {
        memcpy(to, from, length);
        return;
    }
    while (length >= 8) {
        uint64_t word;
        memcpy(&word, from, 8);
        memcpy(to, &word, 8);
        to += 8;
        from += 8;
        length -= 8;
    }
    while (length > 0) {
        *to++ = *from++;
        length--;
    }
}

static inline JSValue json_ascii(struct json_reader *r, const uint8_t *text, size_t length)
{
    JSString *string = js_alloc_string(r->ctx, length, 0);
    if (unlikely(!string))
        return json_fail(r, JSON_THROWN);
    json_copy(str8(string), text, length);
    str8(string)[length] = '\0';
    return JS_MKPTR(JS_TAG_STRING, string);
}

/* Returns a string that may have occurred before. */
static inline JSValue json_short(struct json_reader *r, const uint8_t *text, size_t length)
{
    uint32_t hash = length;
    JSString **known;
    JSValue made;
    for (size_t i = 0; i < length; i++)
        hash = hash * 31 + text[i];
    known = &r->shorts[(hash ^ (hash >> 8)) % JSON_SHORTS];
    if (*known && (*known)->len == length && !memcmp(str8(*known), text, length))
        return js_dup(JS_MKPTR(JS_TAG_STRING, *known));
    made = json_ascii(r, text, length);
    if (JS_IsException(made))
        return made;
    if (*known)
        JS_FreeValue(r->ctx, JS_MKPTR(JS_TAG_STRING, *known));
    *known = JS_VALUE_GET_STRING(js_dup(made));
    return made;
}

/* Reads a string that is not plain, from after its quote on, with the engine's parser. */
static no_inline JSValue json_engine_text(struct json_reader *r, const uint8_t *text)
{
    JSParseState state;
    const uint8_t *p = text;
    js_parse_init(r->ctx, &state, (const char *)r->start, r->end - r->start, "<input>", 1);
    if (json_parse_string(&state, &p) || p > r->end) {
        JS_FreeValue(r->ctx, JS_GetException(r->ctx));
        return json_fail(r, JSON_UNSURE);
    }
    r->at = p;
    return state.token.u.str.str;
}

/* Reads a string from after its quote on. */
static inline JSValue json_text(struct json_reader *r)
{
    const uint8_t *text = r->at, *stop = json_plain_end(text, r->end);
    size_t length = stop - text;
    if (unlikely(*stop != '"'))
        return json_engine_text(r, text);
    r->at = stop + 1;
    if (length == 0)
        return js_empty_string(r->ctx->rt);
    if (length > JS_STRING_LEN_MAX)
        return json_fail(r, JSON_UNSURE);
    if (r->shorts && length <= JSON_SHORT_MAX)
        return json_short(r, text, length);
    return json_ascii(r, text, length);
}

static JSValue json_number(struct json_reader *r)
{
    /* Powers of ten that a double represents exactly. */
    static const double tens[] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    };
    const uint64_t exact_max = 1ULL << 53;
    const uint8_t *text = r->at, *p = text, *digits, *fraction;
    bool is_negative = *p == '-', has_exponent = false;
    uint64_t all = 0;
    int before, after = 0;
    double number;

    p += is_negative;
    digits = p;
    if (!is_digit(*p) || (*p == '0' && is_digit(p[1])))
        return json_fail(r, JSON_UNSURE);
    while (is_digit(*p))
        all = all * 10 + (*p++ - '0');
    before = p - digits;
    if (*p == '.') {
        fraction = ++p;
        while (is_digit(*p))
            all = all * 10 + (*p++ - '0');
        after = p - fraction;
        if (after == 0)
            return json_fail(r, JSON_UNSURE);
    }
    if (*p == 'e' || *p == 'E') {
        has_exponent = true;
        p++;
        p += *p == '+' || *p == '-';
        if (!is_digit(*p))
            return json_fail(r, JSON_UNSURE);
        while (is_digit(*p))
            p++;
    }
    r->at = p;
    if (has_exponent || before + after > 18 || all > exact_max || after > 22)
        return js_float64(strtod((const char *)text, NULL));
    if (after == 0 && all <= INT32_MAX && (all > 0 || !is_negative))
        return js_int32(is_negative ? -(int32_t)all : (int32_t)all);
    number = (double)all / tens[after];
    return js_float64(is_negative ? -number : number);
}

static JSValue json_word(struct json_reader *r, const char *word, size_t length, JSValue value)
{
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length))
        return json_fail(r, JSON_UNSURE);
    r->at += length;
    return value;
}

static JSValue json_array(struct json_reader *r)
{
    size_t base = r->values_used;
    if (json_space(r) == ']') {
        JSValue empty = JS_NewArray(r->ctx);
        r->at++;
        return JS_IsException(empty) ? json_fail(r, JSON_THROWN) : empty;
    }
    for (;;) {
        JSValue value = json_value(r);
        uint8_t next;
        if (JS_IsException(value) || !json_push(r, value))
            return JS_EXCEPTION;
        next = json_space(r);
        r->at++;
        if (next == ']')
            break;
        if (next != ',')
            return json_fail(r, JSON_UNSURE);
    }
    {
        size_t count = r->values_used - base;
        JSValue array;
        /* The values now belong to the array, or are freed. */
        r->values_used = base;
        if (count > INT32_MAX)
            return json_fail(r, JSON_UNSURE);
        array = JS_NewArrayFrom(r->ctx, count, r->values + base);
        return JS_IsException(array) ? json_fail(r, JSON_THROWN) : array;
    }
}

/* If the next key is this one, moves on to the member's value. */
static inline bool json_is_key(struct json_reader *r, const struct json_key *key)
{
    const uint8_t *p = r->at;
    uint32_t i, length = key->length;
    /* The byte after the key is checked last: a text that ends earlier has a zero there. */
    if (*p != '"' || (size_t)(r->end - p) < (size_t)length + 2)
        return false;
    p++;
    for (i = 0; i < length; i++)
        if (p[i] != key->text[i])
            return false;
    if (p[length] != '"')
        return false;
    r->at = p + length + 1;
    return true;
}

/* Reads a key, and finds the engine's atom for its name. */
static bool json_key(struct json_reader *r, struct json_key *key)
{
    const uint8_t *stop;
    if (*r->at != '"') {
        json_fail(r, JSON_UNSURE);
        return false;
    }
    r->at++;
    key->text = r->at;
    stop = json_plain_end(r->at, r->end);
    key->length = stop - key->text;
    if (likely(*stop == '"')) {
        r->at = stop + 1;
        key->atom = JS_NewAtomLen(r->ctx, (const char *)key->text, key->length);
    } else {
        JSValue text = json_engine_text(r, key->text);
        if (JS_IsException(text))
            return false;
        /* This key cannot be found by its bytes. */
        key->text = NULL;
        key->atom = JS_ValueToAtom(r->ctx, text);
        JS_FreeValue(r->ctx, text);
    }
    if (key->atom == JS_ATOM_NULL) {
        json_fail(r, JSON_THROWN);
        return false;
    }
    return true;
}

static void json_forget(JSContext *ctx, struct json_kind *kind)
{
    if (!kind)
        return;
    for (int i = 0; i < kind->count; i++)
        JS_FreeAtom(ctx, kind->keys[i].atom);
    js_free_shape(ctx->rt, kind->shape);
    js_free(ctx, kind);
}

/* Whether kinds are remembered at the current depth. Each depth has its own kinds, so that an
   object that is being read keeps its kind, whatever objects it contains. */
static inline bool json_remembers(const struct json_reader *r)
{
    return r->depth < JSON_DEPTHS;
}

/* Remembers the kind of an object that was created member by member. */
static bool json_remember(struct json_reader *r, JSValueConst object, struct json_key *keys,
                          int count)
{
    JSObject *p = JS_VALUE_GET_OBJ(object);
    uint32_t depth = r->depth;
    struct json_kind *kind;
    int i;
    if (!json_remembers(r))
        return true;
    /* An object with a repeated member has a shape that does not match its keys. */
    if (count == 0 || count > JSON_MEMBERS_MAX || !p->shape->is_hashed ||
        p->shape->prop_count != count || p->shape->deleted_prop_count)
        return true;
    for (i = 0; i < count; i++)
        if (!keys[i].text || get_shape_prop(p->shape)[i].atom != keys[i].atom)
            return true;
    kind = js_malloc(r->ctx, sizeof(*kind));
    if (!kind) {
        json_fail(r, JSON_THROWN);
        return false;
    }
    kind->shape = js_dup_shape(p->shape);
    kind->count = count;
    for (i = 0; i < count; i++) {
        kind->keys[i] = keys[i];
        JS_DupAtom(r->ctx, keys[i].atom);
    }
    i = r->next_kind[depth]++ % JSON_KINDS;
    json_forget(r->ctx, r->kinds[depth][i]);
    r->kinds[depth][i] = kind;
    return true;
}

/* Returns another kind that starts with the same members and continues with the next key, or ends
   here. */
static struct json_kind *json_other_kind(struct json_reader *r, struct json_kind *kind, int count,
                                         bool is_whole)
{
    struct json_kind **kinds = r->kinds[r->depth];
    for (int k = 0; k < JSON_KINDS; k++) {
        struct json_kind *other = kinds[k];
        int i;
        if (!other || other == kind || (is_whole ? other->count != count : other->count <= count))
            continue;
        for (i = 0; i < count && other->keys[i].atom == kind->keys[i].atom; i++)
            ;
        if (i == count && (is_whole || json_is_key(r, &other->keys[count])))
            return other;
    }
    return NULL;
}

static JSValue json_of_kind(struct json_reader *r, struct json_kind *kind, size_t base)
{
    JSObject *p;
    JSValue object = JS_NewObjectFromShape(r->ctx, js_dup_shape(kind->shape), JS_CLASS_OBJECT, NULL);
    if (JS_IsException(object))
        return json_fail(r, JSON_THROWN);
    p = JS_VALUE_GET_OBJ(object);
    for (int i = 0; i < kind->count; i++)
        p->prop[i].u.value = r->values[base + i];
    r->values_used = base;
    return object;
}

static no_inline JSValue json_member_by_member(struct json_reader *r, size_t base, size_t keys_base)
{
    size_t count = r->values_used - base;
    JSValue object = JS_NewObject(r->ctx);
    if (JS_IsException(object))
        return json_fail(r, JSON_THROWN);
    for (size_t i = 0; i < count; i++) {
        JSValue value = r->values[base + i];
        r->values[base + i] = JS_UNDEFINED;
        if (JS_DefinePropertyValue(r->ctx, object, r->keys[keys_base + i].atom, value,
                                   JS_PROP_C_W_E) < 0) {
            JS_FreeValue(r->ctx, object);
            return json_fail(r, JSON_THROWN);
        }
    }
    r->values_used = base;
    if (count <= JSON_MEMBERS_MAX &&
        !json_remember(r, object, r->keys + keys_base, count)) {
        JS_FreeValue(r->ctx, object);
        return JS_EXCEPTION;
    }
    while (r->keys_used > keys_base)
        JS_FreeAtom(r->ctx, r->keys[--r->keys_used].atom);
    return object;
}

static JSValue json_object(struct json_reader *r)
{
    size_t base = r->values_used, keys_base = r->keys_used;
    uint32_t depth = r->depth;
    /* The kind that the object seems to have; if there is none, its keys are recorded. */
    struct json_kind *kind = NULL;
    uint8_t next = json_space(r);
    int count;

    if (next == '}') {
        JSValue empty = JS_NewObject(r->ctx);
        r->at++;
        return JS_IsException(empty) ? json_fail(r, JSON_THROWN) : empty;
    }
    for (int k = 0; json_remembers(r) && k < JSON_KINDS; k++) {
        struct json_kind *known = r->kinds[depth][(r->next_kind[depth] - 1 - k) & (JSON_KINDS - 1)];
        if (known && json_is_key(r, &known->keys[0])) {
            kind = known;
            break;
        }
    }
    for (count = 0;; count++) {
        JSValue value;
        if (count > 0) {
            json_space(r);
            if (kind && !(count < kind->count && json_is_key(r, &kind->keys[count]))) {
                struct json_kind *other = json_other_kind(r, kind, count, false);
                for (int i = 0; !other && i < count; i++) {
                    JS_DupAtom(r->ctx, kind->keys[i].atom);
                    if (!json_push_key(r, kind->keys[i]))
                        return JS_EXCEPTION;
                }
                kind = other;
            }
        }
        if (!kind) {
            struct json_key key;
            if (!json_key(r, &key) || !json_push_key(r, key))
                return JS_EXCEPTION;
        }
        if (json_space(r) != ':')
            return json_fail(r, JSON_UNSURE);
        r->at++;
        value = json_value(r);
        if (JS_IsException(value) || !json_push(r, value))
            return JS_EXCEPTION;
        next = json_space(r);
        r->at++;
        if (next == '}')
            break;
        if (next != ',')
            return json_fail(r, JSON_UNSURE);
    }
    count++;
    if (kind && kind->count != count) {
        struct json_kind *other = json_other_kind(r, kind, count, true);
        for (int i = 0; !other && i < count; i++) {
            JS_DupAtom(r->ctx, kind->keys[i].atom);
            if (!json_push_key(r, kind->keys[i]))
                return JS_EXCEPTION;
        }
        kind = other;
    }
    return kind ? json_of_kind(r, kind, base) : json_member_by_member(r, base, keys_base);
}

static JSValue json_value(struct json_reader *r)
{
    JSValue value;
    switch (json_space(r)) {
    case '"':
        r->at++;
        return json_text(r);
    case 't':
        return json_word(r, "true", 4, JS_TRUE);
    case 'f':
        return json_word(r, "false", 5, JS_FALSE);
    case 'n':
        return json_word(r, "null", 4, JS_NULL);
    case '[':
    case '{':
        if (++r->depth > r->depth_max)
            return json_fail(r, JSON_TOO_DEEP);
        if (js_check_stack_overflow(r->ctx->rt, 0)) {
            JS_ThrowStackOverflow(r->ctx);
            return json_fail(r, JSON_THROWN);
        }
        value = *r->at++ == '[' ? json_array(r) : json_object(r);
        r->depth--;
        return value;
    default:
        return json_number(r);
    }
}

/* `text` is followed by a zero, which is not part of it. If the result is [`JSON_THROWN`], an
   exception is pending. */
enum json_end airlock_json(JSContext *ctx, const uint8_t *text, size_t length, uint32_t depth_max,
                           JSValue *value)
{
    struct json_reader reader = { 0 }, *r = &reader;
    JSString *shorts[JSON_SHORTS];
    size_t threshold = ctx->rt->malloc_gc_threshold, grown;
    int i;

    r->ctx = ctx;
    r->start = r->at = text;
    r->end = text + length;
    r->depth_max = depth_max;
    if (length >= JSON_LARGE) {
        memset(shorts, 0, sizeof(shorts));
        r->shorts = shorts;
    }
    /* All created values stay in use, so a collection would find nothing. */
    ctx->rt->malloc_gc_threshold = -1;
    *value = json_value(r);
    if (!JS_IsException(*value) && (json_space(r), r->at != r->end)) {
        JS_FreeValue(ctx, *value);
        *value = json_fail(r, JSON_UNSURE);
    }
    grown = ctx->rt->malloc_state.malloc_size;
    grown += grown / 2;
    ctx->rt->malloc_gc_threshold = grown > threshold ? grown : threshold;

    while (r->values_used > 0)
        JS_FreeValue(ctx, r->values[--r->values_used]);
    while (r->keys_used > 0)
        JS_FreeAtom(ctx, r->keys[--r->keys_used].atom);
    js_free(ctx, r->values);
    js_free(ctx, r->keys);
    for (i = 0; i < JSON_DEPTHS * JSON_KINDS; i++)
        json_forget(ctx, r->kinds[i / JSON_KINDS][i % JSON_KINDS]);
    for (i = 0; r->shorts && i < JSON_SHORTS; i++)
        if (shorts[i])
            JS_FreeValue(ctx, JS_MKPTR(JS_TAG_STRING, shorts[i]));
    return r->failed;
}

/* Returns the nesting depth of the brackets in a text, without those in quotes. */
static uint32_t json_nesting(const uint8_t *p, const uint8_t *end)
{
    uint32_t depth = 0, deepest = 0;
    for (; p < end; p++) {
        if (*p == '"') {
            for (p++; p < end && *p != '"'; p++)
                p += *p == '\\';
        } else if (*p == '[' || *p == '{') {
            if (++depth > deepest)
                deepest = depth;
        } else if ((*p == ']' || *p == '}') && depth > 0) {
            depth--;
        }
    }
    return deepest;
}

/* Writes the error message of all guests for a text; zero bytes if the text is JSON. */
size_t airlock_not_json(const uint8_t *text, size_t length, uint8_t *words, size_t words_max);

/* After the engine refused a text or a reviver threw: locates the error if the text is invalid. */
static void json_say_why(JSContext *ctx, const char *bytes, size_t length)
{
    char words[200];
    size_t said = airlock_not_json((const uint8_t *)bytes, length, (uint8_t *)words, sizeof(words));
    JSValue thrown = JS_GetException(ctx);
    if (said && JS_IsObject(thrown) &&
        JS_VALUE_GET_OBJ(thrown)->shape->proto ==
            JS_VALUE_GET_OBJ(ctx->native_error_proto[JS_SYNTAX_ERROR])) {
        JS_FreeValue(ctx, thrown);
        JS_ThrowSyntaxError(ctx, "%.*s", (int)said, words);
    } else {
        JS_Throw(ctx, thrown);
    }
}

/* `JSON.parse`. With a reviver, and for a text that is not JSON, this calls the engine's own, which
   recurses as deeply as the text nests. */
static JSValue json_parse(JSContext *ctx, JSValueConst this_val, int argc, JSValueConst *argv)
{
    JSValue text = JS_ToString(ctx, argv[0]), value = JS_EXCEPTION;
    enum json_end end = JSON_UNSURE;
    const char *bytes;
    size_t length;
    if (JS_IsException(text))
        return text;
    bytes = JS_ToCStringLen(ctx, &length, text);
    if (!bytes) {
        JS_FreeValue(ctx, text);
        return JS_EXCEPTION;
    }
    if (!(argc > 1 && JS_IsFunction(ctx, argv[1])))
        end = airlock_json(ctx, (const uint8_t *)bytes, length, JSON_PARSE_DEPTH_MAX, &value);
    if (end == JSON_UNSURE &&
        json_nesting((const uint8_t *)bytes, (const uint8_t *)bytes + length) >
            JSON_PARSE_DEPTH_MAX)
        end = JSON_TOO_DEEP;
    if (end == JSON_TOO_DEEP) {
        JS_ThrowSyntaxError(ctx, "the JSON text is nested more than %d levels deep",
                            JSON_PARSE_DEPTH_MAX);
        value = JS_EXCEPTION;
    } else if (end == JSON_UNSURE) {
        JSValueConst args[] = { text, argc > 1 ? argv[1] : JS_UNDEFINED };
        value = js_json_parse(ctx, this_val, 2, args);
        if (JS_IsException(value))
            json_say_why(ctx, bytes, length);
    }
    JS_FreeCString(ctx, bytes);
    JS_FreeValue(ctx, text);
    return value;
}

/* Replaces the engine's `JSON.parse` with this one. */
int airlock_install(JSContext *ctx)
{
    JSValue json = JS_GetPropertyStr(ctx, ctx->global_obj, "JSON");
    int done = JS_DefinePropertyValueStr(ctx, json, "parse",
                                         JS_NewCFunction(ctx, json_parse, "parse", 2),
                                         JS_PROP_CONFIGURABLE | JS_PROP_WRITABLE);
    JS_FreeValue(ctx, json);
    return done;
}
