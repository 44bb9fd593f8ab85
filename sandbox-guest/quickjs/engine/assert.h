/* Keeps the engine's checks on, although `NDEBUG` turns its tracing off. */

#undef assert
#define assert(what) ((what) ? (void)0 : __builtin_trap())
#ifndef __cplusplus
#undef static_assert
#define static_assert _Static_assert
#endif
