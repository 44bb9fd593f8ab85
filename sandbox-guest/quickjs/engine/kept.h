/* The object from which a `WeakRef` was created, or that `deref` returned, is kept until the
   current job ends, as the specification requires. The engine frees an object with its last
   reference, so without this `new WeakRef({}).deref()` would be undefined. */

#define KEPT_LOOKED_AT 8 /* latest targets that are compared, so that repeated calls keep no more */

static struct {
    JSValue *targets;
    size_t used, room;
} airlock_kept;

static void airlock_keep(JSContext *ctx, JSValueConst target)
{
    size_t i, used = airlock_kept.used;
    for (i = used; i > 0 && i + KEPT_LOOKED_AT > used; i--)
        if (JS_VALUE_GET_PTR(airlock_kept.targets[i - 1]) == JS_VALUE_GET_PTR(target))
            return;
    if (used == airlock_kept.room) {
        size_t wanted = used ? used * 2 : 16;
        JSValue *grown = js_realloc_rt(ctx->rt, airlock_kept.targets, wanted * sizeof(*grown));
        /* Without memory, the object is not kept. */
        if (!grown)
            return;
        airlock_kept.targets = grown;
        airlock_kept.room = wanted;
    }
    airlock_kept.targets[airlock_kept.used++] = js_dup(target);
}

/* Must be called between two jobs. */
void airlock_release(JSContext *ctx)
{
    while (airlock_kept.used > 0)
        JS_FreeValue(ctx, airlock_kept.targets[--airlock_kept.used]);
}
