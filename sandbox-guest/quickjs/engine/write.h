/* Writes values as JSON text, for the arguments of calls and the value of a script: directly from
   the engine's memory into the output bytes. It runs no code of the script. If there is a getter, a
   `toJSON`, a proxy, or anything else that is not plain data, it stops, and the caller
   (`to_json.rs`) starts again with its own encoder, which also has the messages for values that
   JSON cannot express. */

#define WRITE_ESCAPE_MAX 6 /* bytes that one character may take */

struct json_writer {
    JSContext *ctx;
    /* The caller's text, and its bytes: start, current position, and end of the room. */
    void *text;
    uint8_t *start, *at, *end;
    size_t bytes_max;
    uint32_t depth, depth_max;
    enum json_end failed;
};

/* Makes room in a text with `written` bytes; returns the address of the text, and the end of the
   room in `end`. */
uint8_t *airlock_room(void *text, size_t written, size_t more, uint8_t **end);

static bool write_value(struct json_writer *w, JSValueConst value);

static bool write_fail(struct json_writer *w, enum json_end why)
{
    w->failed = why;
    return false;
}

static no_inline bool write_grow(struct json_writer *w, size_t more)
{
    size_t written = w->at - w->start;
    if (written + more > w->bytes_max + WRITE_ESCAPE_MAX)
        return write_fail(w, JSON_UNSURE);
    w->start = airlock_room(w->text, written, more, &w->end);
    w->at = w->start + written;
    return true;
}

static inline bool write_room(struct json_writer *w, size_t more)
{
    return likely((size_t)(w->end - w->at) >= more) || write_grow(w, more);
}

static inline bool write_byte(struct json_writer *w, uint8_t byte)
{
    if (!write_room(w, 1))
        return false;
    *w->at++ = byte;
    return true;
}

static bool write_bytes(struct json_writer *w, const char *bytes, size_t length)
{
    if (!write_room(w, length))
        return false;
    json_copy(w->at, (const uint8_t *)bytes, length);
    w->at += length;
    return true;
}

static inline bool write_is_plain(uint32_t c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Writes a character that needs an escape. */
static inline uint8_t *write_escaped(uint8_t *to, uint32_t c)
{
    static const char digits[] = "0123456789abcdef";
    static const char letters[] = "btn\0fr";
    if (c >= 0x80)
        return to + utf8_encode(to, c);
    *to++ = '\\';
    if (c >= 8 && c <= 13 && c != 11) {
        *to++ = letters[c - 8];
    } else if (c < 0x20) {
        *to++ = 'u';
        *to++ = '0';
        *to++ = '0';
        *to++ = digits[c >> 4];
        *to++ = digits[c & 15];
    } else {
        *to++ = c;
    }
    return to;
}

static bool write_narrow(struct json_writer *w, const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        const uint8_t *plain = p;
        while (p < end && write_is_plain(*p))
            p++;
        if (!write_room(w, (p - plain) + WRITE_ESCAPE_MAX))
            return false;
        json_copy(w->at, plain, p - plain);
        w->at += p - plain;
        if (p < end)
            w->at = write_escaped(w->at, *p++);
    }
    return true;
}

static bool write_wide(struct json_writer *w, const uint16_t *p, const uint16_t *end)
{
    while (p < end) {
        uint32_t c = *p++;
        if (is_surrogate(c)) {
            if (!is_hi_surrogate(c) || p == end || !is_lo_surrogate(*p))
                return write_fail(w, JSON_UNSURE);
            c = from_surrogate(c, *p++);
        }
        if (!write_room(w, WRITE_ESCAPE_MAX))
            return false;
        if (write_is_plain(c))
            *w->at++ = c;
        else
            w->at = write_escaped(w->at, c);
    }
    return true;
}

static bool write_text(struct json_writer *w, JSString *text)
{
    if (!write_byte(w, '"'))
        return false;
    if (text->is_wide_char) {
        if (!write_wide(w, str16(text), str16(text) + text->len))
            return false;
    } else if (!write_narrow(w, str8(text), str8(text) + text->len)) {
        return false;
    }
    return write_byte(w, '"');
}

/* Writes a string that is stored in pieces. */
static no_inline bool write_rope(struct json_writer *w, JSValueConst rope)
{
    JSValue whole = js_linearize_string_rope(w->ctx, rope);
    bool is_written;
    if (JS_IsException(whole))
        return write_fail(w, JSON_THROWN);
    is_written = write_text(w, JS_VALUE_GET_STRING(whole));
    JS_FreeValue(w->ctx, whole);
    return is_written;
}

static bool write_double(struct json_writer *w, double number)
{
    char digits[128];
    JSDTOATempMem memory;
    if (!isfinite(number))
        return write_fail(w, JSON_UNSURE);
    if (number == 0)
        return write_byte(w, '0');
    return write_bytes(w, digits,
                       js_dtoa(digits, number, 10, 0, JS_DTOA_FORMAT_FREE, &memory));
}

/* Whether an object has a `toJSON`; true for a proxy, where this is not known. */
static bool write_has_to_json(JSObject *object)
{
    for (; object; object = object->shape->proto) {
        if (object->is_exotic && object->class_id != JS_CLASS_ARRAY)
            return true;
        if (find_own_property1(object, JS_ATOM_toJSON))
            return true;
    }
    return false;
}

static bool write_array(struct json_writer *w, JSObject *array)
{
    JSValueConst length = array->prop[0].u.value;
    uint32_t i, count = array->u.array.count;
    if (JS_VALUE_GET_TAG(length) != JS_TAG_INT ||
        (uint32_t)JS_VALUE_GET_INT(length) != count)
        return write_fail(w, JSON_UNSURE);
    if (!write_byte(w, '['))
        return false;
    for (i = 0; i < count; i++) {
        JSValueConst item = array->u.array.u.values[i];
        if (i > 0 && !write_byte(w, ','))
            return false;
        if (!(JS_IsUndefined(item) ? write_bytes(w, "null", 4) : write_value(w, item)))
            return false;
    }
    return write_byte(w, ']');
}

static bool write_record(struct json_writer *w, JSObject *object)
{
    JSShapeProperty *member = get_shape_prop(object->shape);
    int i, count = object->shape->prop_count;
    bool is_first = true;
    if (!write_byte(w, '{'))
        return false;
    for (i = 0; i < count; i++, member++) {
        JSAtom name = member->atom;
        JSAtomStruct *text;
        uint32_t index;
        if (name == JS_ATOM_NULL || !(member->flags & JS_PROP_ENUMERABLE))
            continue;
        /* Members whose names are numbers come first, in numeric order. */
        if (JS_AtomIsArrayIndex(w->ctx, &index, name))
            return write_fail(w, JSON_UNSURE);
        text = w->ctx->rt->atom_array[name];
        if (text->atom_type != JS_ATOM_TYPE_STRING)
            continue;
        if (member->flags & JS_PROP_TMASK)
            return write_fail(w, JSON_UNSURE);
        if (JS_IsUndefined(object->prop[i].u.value))
            continue;
        if (!is_first && !write_byte(w, ','))
            return false;
        is_first = false;
        if (!write_text(w, text) || !write_byte(w, ':') ||
            !write_value(w, object->prop[i].u.value))
            return false;
    }
    return write_byte(w, '}');
}

static bool write_object(struct json_writer *w, JSObject *object)
{
    bool is_array = object->class_id == JS_CLASS_ARRAY && object->fast_array;
    bool is_record = object->class_id == JS_CLASS_OBJECT && !object->is_exotic;
    bool is_written;
    /* A value that contains itself ends here too. */
    if ((!is_array && !is_record) || w->depth >= w->depth_max || write_has_to_json(object))
        return write_fail(w, JSON_UNSURE);
    w->depth++;
    is_written = is_array ? write_array(w, object) : write_record(w, object);
    w->depth--;
    return is_written;
}

static bool write_value(struct json_writer *w, JSValueConst value)
{
    char digits[16];
    switch (JS_VALUE_GET_NORM_TAG(value)) {
    case JS_TAG_NULL:
        return write_bytes(w, "null", 4);
    case JS_TAG_BOOL:
        return JS_VALUE_GET_BOOL(value) ? write_bytes(w, "true", 4) : write_bytes(w, "false", 5);
    case JS_TAG_INT:
        return write_bytes(w, digits, i32toa(digits, JS_VALUE_GET_INT(value)));
    case JS_TAG_FLOAT64:
        return write_double(w, JS_VALUE_GET_FLOAT64(value));
    case JS_TAG_STRING:
        return write_text(w, JS_VALUE_GET_STRING(value));
    case JS_TAG_STRING_ROPE:
        return write_rope(w, value);
    case JS_TAG_OBJECT:
        return write_object(w, JS_VALUE_GET_OBJ(value));
    default:
        return write_fail(w, JSON_UNSURE);
    }
}

/* Writes the text of a value, and sets `length` to its length. */
int airlock_write(JSContext *ctx, JSValueConst value, void *text, size_t bytes_max,
                  uint32_t depth_max, size_t *length)
{
    struct json_writer writer = { .ctx = ctx, .text = text, .bytes_max = bytes_max,
                                  .depth_max = depth_max, .failed = JSON_DONE };
    bool is_written = write_value(&writer, value);
    *length = writer.at - writer.start;
    if (is_written && *length > bytes_max)
        writer.failed = JSON_UNSURE;
    return writer.failed;
}
