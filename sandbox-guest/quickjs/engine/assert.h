/* The engine's checks stay on although its tracing, which hangs on the same switch, is off. */

#undef assert
#define assert(what) ((what) ? (void)0 : __builtin_trap())
#ifndef __cplusplus
#undef static_assert
#define static_assert _Static_assert
#endif
