/* An error that cannot be caught ends the functions that it passes through, but if the engine turns
   the error into a rejected promise, the script continues after that. So a stopped script is also
   checked before every call and every backward jump, and is stopped again. */

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
