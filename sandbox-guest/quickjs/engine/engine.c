/* The engine and this guest's additions, as one compilation unit: the additions can use the
   engine's internal functions for creating objects. */

/* Without this, the engine keeps a list of all strings, for printing them. */
#define NDEBUG

/* The engine has lists of small blocks, with separate pages for each size. The guest's heap places
   blocks side by side; this macro makes the engine leave small blocks to the heap. */
#define __SANITIZE_ADDRESS__ 1

#include <stddef.h>
#define js__malloc_usable_size js__malloc_usable_size_of_none
#include "cutils.h"
#undef js__malloc_usable_size
size_t malloc_usable_size(void *block);

static inline size_t js__malloc_usable_size(const void *block)
{
    return malloc_usable_size((void *)block);
}

#include "quickjs.h"
static void airlock_keep(JSContext *ctx, JSValueConst target);

/* Reads an item of a list for a copy of the list. */
static inline bool airlock_item(JSContext *ctx, JSValueConst list, int64_t index, JSValue *item)
{
    JSValue found = JS_GetPropertyInt64(ctx, list, index);
    if (JS_IsException(found))
        return false;
    *item = found;
    return true;
}

/* Moves the items of a plain list up to its end to another position in the list. */
static bool airlock_moved(JSContext *ctx, JSValue list, int64_t to, int64_t from, int64_t count);

/* The lists that are being converted to text, innermost first. */
struct airlock_joining {
    void *list;
    struct airlock_joining *outer;
};
static _Thread_local struct airlock_joining *airlock_joining;

/* Reads a number of at most nine digits, if no character after it could belong to the number. */
static inline bool airlock_plain_number(const uint8_t **text, JSValue *number)
{
    const uint8_t *p = *text;
    int32_t value = 0;
    if (p[0] == '0' && p[1] >= '0' && p[1] <= '9')
        return false;
    while (*p >= '0' && *p <= '9') {
        if (p - *text == 9)
            return false;
        value = value * 10 + (*p++ - '0');
    }
    if (*p == '.' || *p == '_' || *p == '$' || *p == '\\' || *p >= 0x80 ||
        (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z'))
        return false;
    *text = p;
    *number = JS_MKVAL(JS_TAG_INT, value);
    return true;
}

/* Error messages, in `words.h`. */
struct JSString;
static void airlock_no_function(JSContext *ctx, JSValueConst value);
static void airlock_not_iterable(JSContext *ctx, JSValueConst value);
static void airlock_class_called(JSContext *ctx, JSValueConst called);
static void airlock_not_global(JSContext *ctx);
static int airlock_not_uri(JSContext *ctx, struct JSString *text, int at);
static void airlock_not_regex(JSContext *ctx, JSValueConst source, const char *why);
static JSValue airlock_no_bigint(JSContext *ctx, JSValueConst value);

#include "quickjs.c"

#include "move.h"

#include "json.h"
#include "kept.h"
#include "stop.h"
#include "words.h"
#include "write.h"
