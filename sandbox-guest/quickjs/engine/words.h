/* Messages of errors for which the engine's own message is not clear enough. */

/* The beginning of a text, with a mark if the text is longer. */
struct airlock_shown {
    char text[68];
};

static struct airlock_shown airlock_shown(const char *text)
{
    struct airlock_shown shown = { "" };
    size_t length = text ? strlen(text) : 0, bytes_max = 60;
    if (length <= bytes_max) {
        memcpy(shown.text, text ? text : "", length + 1);
        return shown;
    }
    while (bytes_max > 0 && ((uint8_t)text[bytes_max] & 0xc0) == 0x80)
        bytes_max--;
    memcpy(shown.text, text, bytes_max);
    memcpy(shown.text + bytes_max, "\xe2\x80\xa6", 4);
    return shown;
}

static struct airlock_shown airlock_shown_value(JSContext *ctx, JSValueConst value)
{
    const char *text = JS_IsSymbol(value) ? NULL : JS_ToCString(ctx, value);
    struct airlock_shown shown = airlock_shown(text);
    JS_FreeCString(ctx, text);
    return shown;
}

/* The kind of an object, symbol or string; any other value itself. Calls no script function. */
static struct airlock_shown airlock_kind(JSContext *ctx, JSValueConst value)
{
    const char *kind = NULL;
    if (JS_IsObject(value))
        kind = "an object";
    else if (JS_IsSymbol(value))
        kind = "a symbol";
    else if (JS_IsString(value))
        kind = "a string";
    return kind ? airlock_shown(kind) : airlock_shown_value(ctx, value);
}

static void airlock_no_function(JSContext *ctx, JSValueConst value)
{
    JS_ThrowTypeError(ctx, "%s is not a function", airlock_kind(ctx, value).text);
}

static void airlock_not_iterable(JSContext *ctx, JSValueConst value)
{
    JS_ThrowTypeError(ctx, "%s is not iterable", airlock_kind(ctx, value).text);
}

/* A class that is called as a function. The error is located at the call: the class already has a
   frame, but none of its lines has run. */
static void airlock_class_called(JSContext *ctx, JSValueConst class)
{
    const char *name = get_func_name(ctx, class);
    JSValue error;
    JS_ThrowTypeError(ctx, "class constructor%s%s cannot be invoked without 'new'",
                      name && *name ? " " : "", airlock_shown(name).text);
    JS_FreeCString(ctx, name);
    error = JS_GetException(ctx);
    if (JS_IsObject(error))
        build_backtrace(ctx, error, JS_UNDEFINED, NULL, 0, 0, JS_BACKTRACE_FLAG_SKIP_FIRST_LEVEL);
    JS_Throw(ctx, error);
}

/* A string method that requires a regular expression with the flag `g`. */
static void airlock_not_global(JSContext *ctx)
{
    const char *name = get_func_name(ctx, ctx->rt->current_stack_frame->cur_func);
    JS_ThrowTypeError(ctx, "String.prototype.%s called with a non-global RegExp argument",
                      name ? name : "matchAll");
    JS_FreeCString(ctx, name);
}

/* Throws the error for a text that is not valid in a URI from this position on. */
static int airlock_not_uri(JSContext *ctx, JSString *text, int at)
{
    const int shown_max = 20;
    int end = text->len - at > shown_max ? at + shown_max : text->len;
    JSValue rest = js_sub_string(ctx, text, at, end);
    const char *found = JS_IsException(rest) ? NULL : JS_ToCString(ctx, rest);
    if (found)
        js_throw_URIError(ctx, "URI malformed at character %d: `%s%s`", at + 1,
                          found, end < text->len ? "\xe2\x80\xa6" : "");
    JS_FreeCString(ctx, found);
    JS_FreeValue(ctx, rest);
    return -1;
}

static void airlock_not_regex(JSContext *ctx, JSValueConst source, const char *why)
{
    JS_ThrowSyntaxError(ctx, "invalid regular expression `%s`: %s",
                        airlock_shown_value(ctx, source).text, why);
}

/* A number or string that cannot be converted to a BigInt. */
static JSValue airlock_no_bigint(JSContext *ctx, JSValueConst value)
{
    struct airlock_shown shown = airlock_shown_value(ctx, value);
    if (JS_IsString(value))
        return JS_ThrowSyntaxError(ctx, "cannot convert string '%s' to bigint primitive",
                                   shown.text);
    return JS_ThrowRangeError(ctx, "cannot convert %s to a BigInt", shown.text);
}
