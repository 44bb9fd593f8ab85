//! Corrections of defects in the engine's sources, found by running generated scripts on both
//! engines (`cargo xtask engines`). Each text to replace must occur exactly once in its file, or
//! the build fails: a new version of the engine must be reviewed again.

mod keys;
mod loops;
mod speed;
mod words;

/// A file of the engine with its corrections.
pub(crate) const CORRECTED: [(&str, &[&[Correction]]); 3] = [
    ("quickjs.c", &[IN_ITS_WORKINGS, &words::WORDS]),
    ("cutils.h", &[&[speed::CODE_BEGINS_WITH_ROOM]]),
    ("libregexp.c", &[&[HYPHENS_OUTSIDE_CLASSES]]),
];

const IN_ITS_WORKINGS: &[Correction] = &[
    GENERATOR_GOES_ON,
    GENERATOR_GOES_ON_AFTER_RETURN,
    SPREAD_CLOSES_NOTHING,
    TEXTS_ARE_SPREAD,
    LONG_LISTS_ARE_ARGUMENTS,
    COPIES_READ_WITHOUT_ASKING,
    SORTED_COPIES_READ_WITHOUT_ASKING,
    TURNED_COPIES_READ_WITHOUT_ASKING,
    SPLICED_COPIES_READ_WITHOUT_ASKING,
    WEAK_REFERENCES_ARE_KEPT,
    WEAK_REFERENCES_ARE_KEPT_WHEN_ASKED,
    keys::KEYS_COME_BEFORE_VALUES,
    keys::TARGETS_KEEP_THEIR_KEYS,
    keys::KEYS_ARE_READ_WHEN_VALUES_ARE_THERE,
    keys::KEYS_ARE_READ_ONCE,
    keys::NOTHING_READS_NO_KEY,
    GROUPS_CLOSE,
    GROUPS_OF_MAPS_CLOSE,
    NO_NUMBER_IS_NO_MEMBER_OF_BYTES,
    BIGINTS_HAVE_A_SIGN_BESIDE_FRACTIONS,
    speed::LISTS_MOVE_IN_ONE_PIECE,
    speed::LISTS_LOSE_THEIR_LAST,
    loops::ROUNDS_HAVE_A_LABEL,
    loops::ROUNDS_ARE_ENTERED_BY_IT,
    loops::ROUNDS_WITHOUT_AN_UPDATE_KEEP_IT,
    loops::ROUNDS_LEAVE_THEIR_NAMES,
    speed::LISTS_GROW_AT_THEIR_BEGINNING_IN_ONE_PIECE,
    speed::ITEMS_AT_THE_BEGINNING_MAKE_ROOM,
    speed::PLAIN_NUMBERS_ARE_READ_AT_ONCE,
    speed::BLOCKS_ARE_TAKEN_FROM_THE_HEAP,
    speed::EMPTY_BLOCKS_ARE_TAKEN_FROM_THE_HEAP,
    speed::BLOCKS_GO_BACK_TO_THE_HEAP,
    speed::BLOCKS_GROW_IN_THE_HEAP,
    speed::BLOCKS_SAY_HOW_LARGE_THEY_ARE,
    LISTS_MAY_HOLD_THEMSELVES,
    NUMBERS_THAT_FAIL_ARE_ERRORS,
    loops::NAMES_OF_NAMED_LOOPS_ARE_MARKED,
    loops::NAMES_ARE_UNMARKED_AT_FIRST,
    loops::NAMES_BEFORE_NAMES_ARE_MARKED,
    loops::LOOPS_KNOW_THEIR_NAMES,
    loops::ALL_NAMES_OF_A_LOOP_GO_ON_WITH_IT,
];

pub(crate) struct Correction {
    pub(crate) wrong: &'static str,
    pub(crate) right: &'static str,
}

/// After an async generator has ended, it settles all waiting requests, and not only the first:
/// `g.next(); g.next(); g.next()` left the third pending for ever.
const GENERATOR_GOES_ON: Correction = Correction {
    wrong: "
                s->state = JS_ASYNC_GENERATOR_STATE_AWAITING_RETURN;
                js_async_generator_completed_return(ctx, s, next->result);
            } else {
                js_async_generator_reject(ctx, s, next->result);
            }
            goto done;
",
    right: "
                s->state = JS_ASYNC_GENERATOR_STATE_AWAITING_RETURN;
                js_async_generator_completed_return(ctx, s, next->result);
                goto done;
            } else {
                js_async_generator_reject(ctx, s, next->result);
            }
            break;
",
};

/// After an async generator has awaited the value of `return`, it settles all waiting requests too.
const GENERATOR_GOES_ON_AFTER_RETURN: Correction = Correction {
    wrong: "
            js_async_generator_resolve(ctx, s, arg, true);
        }
    } else if (s->state == JS_ASYNC_GENERATOR_STATE_EXECUTING) {
",
    right: "
            js_async_generator_resolve(ctx, s, arg, true);
        }
        js_async_generator_resume_next(ctx, s);
    } else if (s->state == JS_ASYNC_GENERATOR_STATE_EXECUTING) {
",
};

/// `[...items]` and `f(...items)` read the iterator to the end or throw. If the iterator itself
/// throws, its `return` is not called.
const SPREAD_CLOSES_NOTHING: Correction = Correction {
    wrong: "
exception:
    JS_IteratorClose(ctx, enumobj, true);
    JS_FreeValue(ctx, enumobj);
    JS_FreeValue(ctx, method);
    return -1;
}

static __exception int JS_CopyDataProperties(",
    right: "
exception:
    JS_FreeValue(ctx, enumobj);
    JS_FreeValue(ctx, method);
    return -1;
}

static __exception int JS_CopyDataProperties(",
};

/// `{ ...'ab' }` copies the characters.
const TEXTS_ARE_SPREAD: Correction = Correction {
    wrong: "
    if (JS_VALUE_GET_TAG(source) != JS_TAG_OBJECT)
        return 0;

    if (JS_VALUE_GET_TAG(excluded) == JS_TAG_OBJECT)
        pexcl",
    right: "
    if (JS_IsString(source)) {
        val = JS_ToObject(ctx, source);
        if (JS_IsException(val))
            return -1;
        ret = JS_CopyDataProperties(ctx, target, val, excluded, setprop);
        JS_FreeValue(ctx, val);
        return ret;
    }
    if (JS_VALUE_GET_TAG(source) != JS_TAG_OBJECT)
        return 0;

    if (JS_VALUE_GET_TAG(excluded) == JS_TAG_OBJECT)
        pexcl",
};

/// `items.push(...rows)` and `Math.max(...rows)` accept more than 65,535 arguments, which are in a
/// separate block. A bound function copies the arguments to the stack. The stack is larger than the
/// new maximum, so the function notices when there is no room.
const LONG_LISTS_ARE_ARGUMENTS: Correction = Correction {
    wrong: "
    if (len > JS_MAX_LOCAL_VARS) {
        // XXX: check for stack overflow?
        JS_ThrowRangeError(ctx, \"too many arguments in function call (only %d allowed)\",
                           JS_MAX_LOCAL_VARS);
        return NULL;
",
    right: "
    if (len > 250000) {
        JS_ThrowRangeError(ctx, \"too many arguments in function call (only %d allowed)\",
                           250000);
        return NULL;
",
};

/// `with`, `toSorted`, `toReversed` and `toSpliced` read each item without a check whether the item
/// exists, which a proxy could observe. The reading function is in `engine/engine.c`.
const COPIES_READ_WITHOUT_ASKING: Correction = Correction {
    wrong: "
        for (; i < idx; i++, pval++)
            if (-1 == JS_TryGetPropertyInt64(ctx, obj, i, pval))
                goto exception;
        *pval = js_dup(argv[1]);
        for (i++, pval++; i < len; i++, pval++) {
            if (-1 == JS_TryGetPropertyInt64(ctx, obj, i, pval))
                goto exception;
        }
",
    right: "
        for (; i < idx; i++, pval++)
            if (!airlock_item(ctx, obj, i, pval))
                goto exception;
        *pval = js_dup(argv[1]);
        for (i++, pval++; i < len; i++, pval++) {
            if (!airlock_item(ctx, obj, i, pval))
                goto exception;
        }
",
};

const SORTED_COPIES_READ_WITHOUT_ASKING: Correction = Correction {
    wrong: "
                if (-1 == JS_TryGetPropertyInt64(ctx, obj, i, pval))
                    goto exception;
            }
        }
    }

    ret = js_array_sort(ctx, arr, argc, argv);
",
    right: "
                if (!airlock_item(ctx, obj, i, pval))
                    goto exception;
            }
        }
    }

    ret = js_array_sort(ctx, arr, argc, argv);
",
};

const TURNED_COPIES_READ_WITHOUT_ASKING: Correction = Correction {
    wrong: "
            for (; i >= 0; i--, pval++) {
                if (-1 == JS_TryGetPropertyInt64(ctx, obj, i, pval))
",
    right: "
            for (; i >= 0; i--, pval++) {
                if (!airlock_item(ctx, obj, i, pval))
",
};

const SPLICED_COPIES_READ_WITHOUT_ASKING: Correction = Correction {
    wrong: "
        for (i = 0; i < start; i++, pval++)
            if (-1 == JS_TryGetPropertyInt64(ctx, obj, i, pval))
                goto exception;
        for (j = 0; j < add; j++, pval++)
            *pval = js_dup(argv[2 + j]);
        for (i += del; i < len; i++, pval++)
            if (-1 == JS_TryGetPropertyInt64(ctx, obj, i, pval))
                goto exception;
",
    right: "
        for (i = 0; i < start; i++, pval++)
            if (!airlock_item(ctx, obj, i, pval))
                goto exception;
        for (j = 0; j < add; j++, pval++)
            *pval = js_dup(argv[2 + j]);
        for (i += del; i < len; i++, pval++)
            if (!airlock_item(ctx, obj, i, pval))
                goto exception;
",
};

/// `new WeakRef({}).deref()` returns the object until the current job ends; `engine/kept.h` keeps
/// the object.
const WEAK_REFERENCES_ARE_KEPT: Correction = Correction {
    wrong: "
    insert_weakref_record(arg, wr);

    JS_SetOpaqueInternal(obj, wrd);
",
    right: "
    insert_weakref_record(arg, wr);
    airlock_keep(ctx, arg);

    JS_SetOpaqueInternal(obj, wrd);
",
};

/// The object that `deref` returned is kept as well.
const WEAK_REFERENCES_ARE_KEPT_WHEN_ASKED: Correction = Correction {
    wrong: "
    return js_dup(wrd->target);
}

static const JSCFunctionListEntry js_weakref_proto_funcs[] = {",
    right: "
    airlock_keep(ctx, wrd->target);
    return js_dup(wrd->target);
}

static const JSCFunctionListEntry js_weakref_proto_funcs[] = {",
};

/// `Object.groupBy` closes the iterator if its function fails, creates a key once, and calls the
/// function without a receiver.
const GROUPS_CLOSE: Correction = Correction {
    wrong: "
        k = JS_Call(ctx, cb, ctx->global_obj, 2, args);
        if (JS_IsException(k))
            goto exception;

        k = js_dup(k);
",
    right: "
        k = JS_Call(ctx, cb, JS_UNDEFINED, 2, args);
        if (JS_IsObject(k)) {
            prop = JS_ToPropertyKey(ctx, k);
            JS_FreeValue(ctx, k);
            k = prop;
            prop = JS_UNDEFINED;
        }
        if (JS_IsException(k)) {
            JS_IteratorClose(ctx, iter, true);
            goto exception;
        }

        k = js_dup(k);
",
};

/// `Map.groupBy` closes the iterator and calls the function without a receiver too.
const GROUPS_OF_MAPS_CLOSE: Correction = Correction {
    wrong: "
        k = JS_Call(ctx, cb, ctx->global_obj, 2, args);
        if (JS_IsException(k))
            goto exception;

        prop = js_map_get(",
    right: "
        k = JS_Call(ctx, cb, JS_UNDEFINED, 2, args);
        if (JS_IsException(k)) {
            JS_IteratorClose(ctx, iter, true);
            goto exception;
        }

        prop = js_map_get(",
};

/// `bytes[NaN] = 1` has no effect, as for every number that is not an index.
const NO_NUMBER_IS_NO_MEMBER_OF_BYTES: Correction = Correction {
    wrong: "
            if (!(c =='I' && (r_end - r) == 8 &&
                  !memcmp(r + 1, \"nfinity\", 7)))
                return JS_UNDEFINED;
",
    right: "
            if (len == 3 && !memcmp(r, \"NaN\", 3))
                return js_float64(NAN);
            if (!(c =='I' && (r_end - r) == 8 &&
                  !memcmp(r + 1, \"nfinity\", 7)))
                return JS_UNDEFINED;
",
};

/// `-1n < -0.5` is true: the sign must be compared before the magnitudes.
const BIGINTS_HAVE_A_SIGN_BESIDE_FRACTIONS: Correction = Correction {
    wrong: "
            if (f < e)
                return -1;
            else
                return 1;
        } else {
            mant = (mant |",
    right: "
            if (f < e)
                return 2 * a_sign - 1;
            else
                return 1 - 2 * a_sign;
        } else {
            mant = (mant |",
};

/// With the flag `v`, some characters need a backslash only inside a class: `/a-b/v` is valid.
const HYPHENS_OUTSIDE_CLASSES: Correction = Correction {
    wrong: "
    case '/':
    case '-':
    case '|':
        if (s->unicode_sets) {",
    right: "
    case '/':
    case '-':
    case '|':
        if (s->unicode_sets && inclass) {",
};

/// The text of a list that contains itself is empty at that position, as in every other engine;
/// this engine recursed until its stack was full.
const LISTS_MAY_HOLD_THEMSELVES: Correction = Correction {
    wrong: "
static JSValue js_array_join(JSContext *ctx, JSValueConst this_val,
                             int argc, JSValueConst *argv, int toLocaleString)
{
",
    right: "
static JSValue airlock_join(JSContext *ctx, JSValueConst this_val,
                            int argc, JSValueConst *argv, int toLocaleString);

static JSValue js_array_join(JSContext *ctx, JSValueConst this_val,
                             int argc, JSValueConst *argv, int toLocaleString)
{
    struct airlock_joining here = { NULL, airlock_joining };
    if (JS_VALUE_GET_TAG(this_val) == JS_TAG_OBJECT)
        here.list = JS_VALUE_GET_OBJ(this_val);
    for (struct airlock_joining *at = airlock_joining; at && here.list; at = at->outer)
        if (at->list == here.list)
            return js_empty_string(ctx->rt);
    airlock_joining = &here;
    JSValue text = airlock_join(ctx, this_val, argc, argv, toLocaleString);
    airlock_joining = here.outer;
    return text;
}

static JSValue airlock_join(JSContext *ctx, JSValueConst this_val,
                            int argc, JSValueConst *argv, int toLocaleString)
{
",
};

/// `Reflect.defineProperty` on an item of a typed array throws the error of the conversion to a
/// number; it returned false, even for a stack overflow.
const NUMBERS_THAT_FAIL_ARE_ERRORS: Correction = Correction {
    wrong: "
            ta_cvt_fail:
                if (flags & JS_PROP_REFLECT_DEFINE_PROPERTY) {
                    JS_FreeValue(ctx, JS_GetException(ctx));
                    return false;
                }
                return -1;
",
    right: "
            ta_cvt_fail:
                return -1;
",
};
