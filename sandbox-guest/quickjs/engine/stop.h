/* An error that cannot be caught leaves the functions that it comes through, and no further: where
   the engine makes a rejected promise of an error, the script goes on behind it. So whoever is
   stopped for good is also asked before every call and every jump back, and stopped again. */

static int airlock_is_stopped(JSRuntime *rt, void *context)
{
    ((JSContext *)context)->interrupt_counter = 1;
    return 1;
}

void airlock_stop(JSContext *ctx)
{
    ctx->interrupt_counter = 1;
    JS_SetInterruptHandler(ctx->rt, airlock_is_stopped, ctx);
}
