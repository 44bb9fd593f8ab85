//! Corrections of error messages: errors name the value, and are located where the script caused
//! them. Where possible, both engines use the same text; `words.h` has the longer code.

use super::Correction;

pub(crate) const WORDS: [Correction; 26] = [
    CLASSES_ARE_NAMED,
    Correction {
        wrong: "
                JS_ThrowTypeError(ctx, \"empty array\");
",
        right: "
                JS_ThrowTypeError(ctx, \"%s.prototype.reduce%s: called on an empty array and with no initial value\",
                                  special & special_TA ? \"TypedArray\" : \"Array\",
                                  special & special_reduceRight ? \"Right\" : \"\");
",
    },
    Correction {
        wrong: "
        JS_ThrowRangeError(ctx, \"invalid repeat count\");
",
        right: "
        JS_ThrowRangeError(ctx, val < 0 ? \"String.prototype.repeat: count must be non-negative\"
                           : val == INT64_MAX ? \"String.prototype.repeat: count must be less than infinity\"
                           : \"invalid string length\");
",
    },
    Correction {
        wrong: "
    if (f < 0 || f > 100)
        return JS_ThrowRangeError(ctx, \"invalid number of digits\");
    if (fabs(d) >= 1e21)
",
        right: "
    if (f < 0 || f > 100)
        return JS_ThrowRangeError(ctx, \"toFixed() digits argument must be between 0 and 100\");
    if (fabs(d) >= 1e21)
",
    },
    Correction {
        wrong: "
            return JS_ThrowRangeError(ctx, \"invalid number of digits\");
        f++;
",
        right: "
            return JS_ThrowRangeError(ctx, \"toExponential() argument must be between 0 and 100\");
        f++;
",
    },
    Correction {
        wrong: "
    if (p < 1 || p > 100)
        return JS_ThrowRangeError(ctx, \"invalid number of digits\");
",
        right: "
    if (p < 1 || p > 100)
        return JS_ThrowRangeError(ctx, \"precision must be an integer at least 1 and no greater than 100\");
",
    },
    Correction {
        wrong: "
        JS_ThrowRangeError(ctx, \"toString() radix argument must be between 2 and 36\");
",
        right: "
        JS_ThrowRangeError(ctx, \"radix must be an integer at least 2 and no greater than 36\");
",
    },
    Correction {
        wrong: "
            return JS_ThrowRangeError(ctx, \"Date value is NaN\");
",
        right: "
            return JS_ThrowRangeError(ctx, \"Invalid time value\");
",
    },
    Correction {
        wrong: "
            JS_ThrowRangeError(ctx, \"bad normalization form\");
",
        right: "
            JS_ThrowRangeError(ctx, \"The normalization form should be one of NFC, NFD, NFKC, NFKD.\");
",
    },
    Correction {
        wrong: "
        JS_ThrowTypeError(ctx, \"BigInt are forbidden in JSON.stringify\");
",
        right: "
        JS_ThrowTypeError(ctx, \"cannot serialize bigint to JSON\");
",
    },
    Correction {
        wrong: "
            JS_ThrowTypeError(ctx, \"circular reference\");
",
        right: "
            JS_ThrowTypeError(ctx, \"cyclic object value\");
",
    },
    ANY_SAYS_SOMETHING,
    Correction {
        wrong: "
            JS_ThrowTypeError(ctx, \"regexp must have the 'g' flag\");
",
        right: "
            airlock_not_global(ctx);
",
    },
    Correction {
        wrong: "
    JS_ThrowTypeErrorNotAFunction(ctx);
    return -1;
}

static int check_exception_free(",
        right: "
    airlock_no_function(ctx, obj);
    return -1;
}

static int check_exception_free(",
    },
    Correction {
        wrong: "
        return JS_ThrowTypeError(ctx, \"value is not iterable\");
",
        right: "
        airlock_not_iterable(ctx, obj);
        return JS_EXCEPTION;
",
    },
    Correction {
        wrong: "
            JS_ThrowTypeError(ctx, \"value is not iterable\");
",
        right: "
            airlock_not_iterable(ctx, items);
",
    },
    Correction {
        wrong: "
        if (!JS_IsObject(item)) {
            JS_ThrowTypeErrorNotAnObject(ctx);
            goto fail1;
",
        right: "
        if (!JS_IsObject(item)) {
            JS_ThrowTypeError(ctx, \"cannot get key and value from primitive item of `iterable`\");
            goto fail1;
",
    },
    Correction {
        wrong: "
                if (!JS_IsObject(item)) {
                    JS_ThrowTypeErrorNotAnObject(ctx);
                    goto fail1;
",
        right: "
                if (!JS_IsObject(item)) {
                    JS_ThrowTypeError(ctx, \"cannot get key and value from primitive item of `iterable`\");
                    goto fail1;
",
    },
    Correction {
        wrong: "
    if (k >= p->len || string_get(p, k) != '%')
        return js_throw_URIError(ctx, \"expecting %%\");
    if (k + 2 >= p->len || (c = string_get_hex(p, k + 1, 2)) < 0)
        return js_throw_URIError(ctx, \"expecting hex digit\");
",
        right: "
    if (k >= p->len || string_get(p, k) != '%')
        return airlock_not_uri(ctx, p, k);
    if (k + 2 >= p->len || (c = string_get_hex(p, k + 1, 2)) < 0)
        return airlock_not_uri(ctx, p, k);
",
    },
    Correction {
        wrong: "
                    js_throw_URIError(ctx, \"malformed UTF-8\");
",
        right: "
                    airlock_not_uri(ctx, p, k - 3);
",
    },
    Correction {
        wrong: "
                js_throw_URIError(ctx, \"invalid character\");
",
        right: "
                airlock_not_uri(ctx, p, k - 1);
",
    },
    Correction {
        wrong: "
                if (k >= p->len) {
                    js_throw_URIError(ctx, \"expecting surrogate pair\");
",
        right: "
                if (k >= p->len) {
                    airlock_not_uri(ctx, p, k - 1);
",
    },
    Correction {
        wrong: "
                if (!is_lo_surrogate(c1)) {
                    js_throw_URIError(ctx, \"expecting surrogate pair\");
",
        right: "
                if (!is_lo_surrogate(c1)) {
                    airlock_not_uri(ctx, p, k - 2);
",
    },
    Correction {
        wrong: "
        JS_ThrowSyntaxError(ctx, \"%s\", error_msg);
        return JS_EXCEPTION;
    }

    ret = js_new_string8_len(ctx, (void *)&re_bytecode_buf,
",
        right: "
        airlock_not_regex(ctx, pattern, error_msg);
        return JS_EXCEPTION;
    }

    ret = js_new_string8_len(ctx, (void *)&re_bytecode_buf,
",
    },
    Correction {
        wrong: "
    val = JS_StringToBigInt(ctx, val);
    if (JS_VALUE_IS_NAN(val))
        return JS_ThrowSyntaxError(ctx, \"invalid BigInt literal\");
    return val;
",
        right: "
    JSValue text = js_dup(val);
    val = JS_StringToBigInt(ctx, val);
    if (JS_VALUE_IS_NAN(val))
        val = airlock_no_bigint(ctx, text);
    JS_FreeValue(ctx, text);
    return val;
",
    },
    Correction {
        wrong: "
                } else if (res == 1) {
                    val = JS_ThrowRangeError(ctx, \"cannot convert to BigInt: not an integer\");
                } else {
                    val = JS_ThrowRangeError(ctx, \"cannot convert NaN or Infinity to BigInt\");                }
",
        right: "
                } else {
                    val = airlock_no_bigint(ctx, val);
                }
",
    },
];

/// Calling a class as `A()` is an error on the line of the call, not of the class.
const CLASSES_ARE_NAMED: Correction = Correction {
    wrong: "
                JS_ThrowTypeError(ctx, \"class constructors must be invoked with 'new'\");
",
    right: "
                airlock_class_called(ctx, sf->cur_func);
",
};

/// An uncaught error without a message does not show that it came from `Promise.any`.
const ANY_SAYS_SOMETHING: Correction = Correction {
    wrong: "
    if (JS_IsException(obj))
        return obj;
    JS_DefinePropertyValueConst(ctx, obj, JS_ATOM_errors, errors,
",
    right: "
    if (JS_IsException(obj))
        return obj;
    JS_DefinePropertyValueStr(ctx, obj, \"message\",
                              JS_NewString(ctx, \"no promise in Promise.any was fulfilled.\"),
                              JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
    JS_DefinePropertyValueConst(ctx, obj, JS_ATOM_errors, errors,
",
};
