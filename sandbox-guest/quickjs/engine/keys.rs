//! Corrections of the moment at which the engine converts keys to text.

use super::Correction;

/// `{ [key]: value }` converts the key to a text or a symbol before it evaluates the value, and
/// only once.
pub(crate) const KEYS_COME_BEFORE_VALUES: Correction = Correction {
    wrong: "
        if (js_parse_expr(s))
            goto fail;
        if (js_parse_expect(s, ']'))
            goto fail;
        name = JS_ATOM_NULL;
",
    right: "
        if (js_parse_expr(s))
            goto fail;
        if (js_parse_expect(s, ']'))
            goto fail;
        if (allow_method)
            emit_op(s, OP_to_propkey);
        name = JS_ATOM_NULL;
",
};

/// `object[key] = value` converts the key to a text or a symbol after it has evaluated the value,
/// and so does `[object[key] = value] = items`.
pub(crate) const TARGETS_KEEP_THEIR_KEYS: Correction = Correction {
    wrong: "
            break;
        case OP_get_array_el:
            emit_op(s, OP_to_propkey2);
            break;
        case OP_get_super_value:
            emit_op(s, OP_to_propkey);
            break;
        }
    }

    *popcode = opcode;
",
    right: "
            break;
        case OP_get_super_value:
            emit_op(s, OP_to_propkey);
            break;
        }
    }

    *popcode = opcode;
",
};
pub(crate) const KEYS_ARE_READ_WHEN_VALUES_ARE_THERE: Correction = Correction {
    wrong: "
        if (op == '=' && opcode == OP_get_array_el) {
            int label_next = -1;
            JSFunctionDef *fd = s->cur_func;
            assert(OP_to_propkey2 == fd->byte_code.buf[fd->last_opcode_pos]);
            fd->byte_code.size = fd->last_opcode_pos;
            fd->last_opcode_pos = -1;
            emit_op(s, OP_swap); // obj key -> key obj
            emit_op(s, OP_dup);
            emit_op(s, OP_is_undefined_or_null);
            label_next = emit_goto(s, OP_if_true, -1);
            emit_op(s, OP_swap);
            emit_op(s, OP_to_propkey);
            emit_op(s, OP_swap);
            emit_label(s, label_next);
            emit_op(s, OP_swap);
        }
",
    right: "
",
};
pub(crate) const KEYS_ARE_READ_ONCE: Correction = Correction {
    wrong: "
        if (op == '=' && opcode == OP_get_array_el) {
            emit_op(s, OP_swap); // obj key val -> obj val key
            emit_op(s, OP_to_propkey);
            emit_op(s, OP_swap);
        }
",
    right: "
",
};

/// If there is no object, the key is not converted.
pub(crate) const NOTHING_READS_NO_KEY: Correction = Correction {
    wrong: "
    slow_path:
        atom = JS_ValueToAtom(ctx, prop);
",
    right: "
    slow_path:
        if (JS_IsObject(prop) && (JS_IsNull(this_obj) || JS_IsUndefined(this_obj))) {
            JS_FreeValue(ctx, prop);
            JS_FreeValue(ctx, val);
            JS_ThrowTypeError(ctx, \"value has no property\");
            return -1;
        }
        atom = JS_ValueToAtom(ctx, prop);
",
};
