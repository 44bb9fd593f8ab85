//! Corrections of loops.

use super::Correction;

/// A function created in an iteration of `for (let i = 0; …)` captures the `i` of that iteration.
/// `continue` skipped the code that creates the variables of each iteration, so all iterations
/// shared one `i`.
pub(crate) const ROUNDS_HAVE_A_LABEL: Correction = Correction {
    wrong: "
            int label_cont, label_break, label_body, label_test;
",
    right: "
            int label_cont, label_break, label_body, label_test, label_round;
",
};
pub(crate) const ROUNDS_ARE_ENTERED_BY_IT: Correction = Correction {
    wrong: "
            label_cont = new_label(s);
            label_body = new_label(s);
            label_break = new_label(s);

            push_break_entry(s->cur_func, &break_entry,
                             label_name, label_break, label_cont, 0);
",
    right: "
            label_cont = new_label(s);
            label_body = new_label(s);
            label_break = new_label(s);
            label_round = new_label(s);

            push_break_entry(s->cur_func, &break_entry,
                             label_name, label_break, label_round, 0);
",
};
pub(crate) const ROUNDS_WITHOUT_AN_UPDATE_KEEP_IT: Correction = Correction {
    wrong: "
                break_entry.label_cont = label_cont = label_test;
",
    right: "
                label_cont = label_test;
",
};
pub(crate) const ROUNDS_LEAVE_THEIR_NAMES: Correction = Correction {
    wrong: "
            /* XXX: check continue case */
",
    right: "
            emit_label(s, label_round);
",
};

/// `continue one` in `one: two: for (…)` continues the loop; only the innermost label worked.
pub(crate) const NAMES_OF_NAMED_LOOPS_ARE_MARKED: Correction = Correction {
    wrong: "
    JSAtom label_name; /* JS_ATOM_NULL if none */
",
    right: "
    bool names_what_is_named; /* a label whose statement has another */
    JSAtom label_name; /* JS_ATOM_NULL if none */
",
};
pub(crate) const NAMES_ARE_UNMARKED_AT_FIRST: Correction = Correction {
    wrong: "
    be->is_regular_stmt = false;
    be->has_using = false;
",
    right: "
    be->is_regular_stmt = false;
    be->names_what_is_named = false;
    be->has_using = false;
",
};
pub(crate) const NAMES_BEFORE_NAMES_ARE_MARKED: Correction = Correction {
    wrong: "
            fd->top_break->is_regular_stmt = 1;
            if (!fd->is_strict_mode &&
",
    right: "
            fd->top_break->is_regular_stmt = 1;
            fd->top_break->names_what_is_named = is_label(s);
            if (!fd->is_strict_mode &&
",
};
pub(crate) const LOOPS_KNOW_THEIR_NAMES: Correction = Correction {
    wrong: "
static __exception int emit_break(JSParseState *s, JSAtom name, int is_cont)
{
",
    right: "
static bool airlock_is_named(const BlockEnv *loop, JSAtom name)
{
    if (loop->label_name == name)
        return true;
    while ((loop = loop->prev) && loop->names_what_is_named)
        if (loop->label_name == name)
            return true;
    return false;
}

static __exception int emit_break(JSParseState *s, JSAtom name, int is_cont)
{
",
};
pub(crate) const ALL_NAMES_OF_A_LOOP_GO_ON_WITH_IT: Correction = Correction {
    wrong: "
            (name == JS_ATOM_NULL || top->label_name == name)) {
            /* continue stays inside the same block */
",
    right: "
            (name == JS_ATOM_NULL || airlock_is_named(top, name))) {
            /* continue stays inside the same block */
",
};
