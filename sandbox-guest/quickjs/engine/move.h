/* Moves the items of a plain list.

   The engine copies items one by one, and increments and decrements the reference count of each:
   `splice` in the middle of a list touched every object after that position. If all later items
   move, only the counts of items that are then duplicated or removed have to change. */

static bool airlock_moved(JSContext *ctx, JSValue list, int64_t to, int64_t from, int64_t count)
{
    if (JS_VALUE_GET_TAG(list) != JS_TAG_OBJECT)
        return false;
    JSObject *p = JS_VALUE_GET_OBJ(list);
    if (p->class_id != JS_CLASS_ARRAY || !p->fast_array)
        return false;
    int64_t length = p->u.array.count;
    if (count <= 0 || to < 0 || to >= from || from + count != length)
        return false;
    /* The first items are overwritten; the last ones are duplicated until they are deleted. */
    JSValue *items = p->u.array.u.values;
    int64_t end = to + count;
    int64_t gone = min_int64(from, end) - to;
    JSValue *lost = js_malloc(ctx, gone * sizeof(*lost));
    if (!lost) {
        JS_FreeValue(ctx, JS_GetException(ctx));
        return false;
    }
    memcpy(lost, items + to, gone * sizeof(*lost));
    for (int64_t i = end > from ? end : from; i < length; i++)
        js_dup(items[i]);
    memmove(items + to, items + from, count * sizeof(*items));
    /* At the end, because freeing these may free other objects. */
    for (int64_t i = 0; i < gone; i++)
        JS_FreeValue(ctx, lost[i]);
    js_free(ctx, lost);
    return true;
}
