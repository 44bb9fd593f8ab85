//! Optimisations of correct but slow parts of the engine.

use super::Correction;

/// `items.splice(at, 1)` moves the later items without visiting each one; see `engine/move.h`.
pub(crate) const LISTS_MOVE_IN_ONE_PIECE: Correction = Correction {
    wrong: "
            p = NULL;
        }
    }

    for (i = 0; i < count; ) {
        if (dir < 0) {
",
    right: "
            p = NULL;
        }
    }
    if (airlock_moved(ctx, obj, to_pos, from_pos, count))
        return 0;

    for (i = 0; i < count; ) {
        if (dir < 0) {
",
};

/// A plain list stays plain when its last item is deleted, as in `splice`; otherwise each later
/// access took a look-up by name.
pub(crate) const LISTS_LOSE_THEIR_LAST: Correction = Correction {
    wrong: "
                    p->class_id == JS_CLASS_MAPPED_ARGUMENTS) {
                    if (convert_fast_array_to_array(ctx, p))
                        return -1;
                    goto redo;
                } else {
                    return false;
",
    right: "
                    p->class_id == JS_CLASS_MAPPED_ARGUMENTS) {
                    if (p->class_id == JS_CLASS_ARRAY && idx == p->u.array.count - 1) {
                        p->u.array.count = idx;
                        JS_FreeValue(ctx, p->u.array.u.values[idx]);
                        return true;
                    }
                    if (convert_fast_array_to_array(ctx, p))
                        return -1;
                    goto redo;
                } else {
                    return false;
",
};

/// `unshift` on a plain list moves the items all at once, similar to the fast path of `push`; item
/// by item, 32,000 of them took two seconds.
pub(crate) const LISTS_GROW_AT_THEIR_BEGINNING_IN_ONE_PIECE: Correction = Correction {
    wrong: "
    /* fast path for push on fast arrays */
    if (likely(JS_VALUE_GET_TAG(this_val) == JS_TAG_OBJECT && !unshift)) {
",
    right: "
    if (likely(JS_VALUE_GET_TAG(this_val) == JS_TAG_OBJECT)) {
",
};
pub(crate) const ITEMS_AT_THE_BEGINNING_MAKE_ROOM: Correction = Correction {
    wrong: "
                    for(i = 0; i < argc; i++) {
                        p->u.array.u.values[array_len + i] = js_dup(argv[i]);
                    }
                    p->u.array.count = new_len;
",
    right: "
                    JSValue *items = p->u.array.u.values;
                    if (!unshift)
                        items += array_len;
                    else if (argc > 0)
                        memmove(items + argc, items, array_len * sizeof(*items));
                    for(i = 0; i < argc; i++) {
                        items[i] = js_dup(argv[i]);
                    }
                    p->u.array.count = new_len;
",
};

/// A number that consists of a few digits is parsed directly. The engine's own parser multiplies
/// powers of ten, and takes as long for `1` as for `1.7976931348623157e308`.
pub(crate) const PLAIN_NUMBERS_ARE_READ_AT_ONCE: Correction = Correction {
    wrong: "
            flags = ATOD_ACCEPT_BIN_OCT | ATOD_ACCEPT_LEGACY_OCTAL |
                ATOD_ACCEPT_UNDERSCORES | ATOD_ACCEPT_SUFFIX;
            ret = js_atof(s->ctx, (const char *)p, (const char **)&p, 0,
                          flags);
",
    right: "
            if (airlock_plain_number(&p, &ret))
                goto number_is_read;
            flags = ATOD_ACCEPT_BIN_OCT | ATOD_ACCEPT_LEGACY_OCTAL |
                ATOD_ACCEPT_UNDERSCORES | ATOD_ACCEPT_SUFFIX;
            ret = js_atof(s->ctx, (const char *)p, (const char **)&p, 0,
                          flags);
        number_is_read:
",
};

/// The engine calls this guest's heap directly: in each run, a function that is called through the
/// table costs a table entry.
pub(crate) const BLOCKS_ARE_TAKEN_FROM_THE_HEAP: Correction = Correction {
    wrong: "
    b = rt->mf.js_malloc(rt->malloc_state.opaque,
                         sizeof(JSMallocBlockHeader) + size);
",
    right: "
    b = malloc(sizeof(JSMallocBlockHeader) + size);
",
};
pub(crate) const EMPTY_BLOCKS_ARE_TAKEN_FROM_THE_HEAP: Correction = Correction {
    wrong: "
    b = rt->mf.js_calloc(rt->malloc_state.opaque, 1,
                         sizeof(JSMallocBlockHeader) + size);
",
    right: "
    b = calloc(1, sizeof(JSMallocBlockHeader) + size);
",
};
pub(crate) const BLOCKS_GO_BACK_TO_THE_HEAP: Correction = Correction {
    wrong: "
            rt->mf.js_free(rt->malloc_state.opaque, b);
",
    right: "
            free(b);
",
};
pub(crate) const BLOCKS_GROW_IN_THE_HEAP: Correction = Correction {
    wrong: "
            nb = rt->mf.js_realloc(rt->malloc_state.opaque, b,
                                   sizeof(JSMallocBlockHeader) + size);
",
    right: "
            nb = realloc(b, sizeof(JSMallocBlockHeader) + size);
",
};
pub(crate) const BLOCKS_SAY_HOW_LARGE_THEY_ARE: Correction = Correction {
    wrong: "
            size_t size = rt->mf.js_malloc_usable_size(b);
",
    right: "
            size_t size = js__malloc_usable_size(b);
",
};

/// The buffer of a function's code starts with spare capacity; it started with one byte, and needed
/// ten steps to reach a hundred.
pub(crate) const CODE_BEGINS_WITH_ROOM: Correction = Correction {
    wrong: "
        if (size < new_size || size < s->allocated_size) /* overflow test */
            new_allocated_size = new_size;
",
    right: "
        if (size < new_size || size < s->allocated_size) /* overflow test */
            new_allocated_size = new_size < 96 ? 96 : new_size;
",
};
