declare const a: {
b_c(a?: { [k: string]: any }): Promise<any>
}
declare const a_b: {
c(a?: { [k: string]: any }): Promise<any>
}
declare const console_: {
// Not the console of scripts.
log(a?: { [k: string]: any }): Promise<any>
}
declare const my_server: {
// (2fa) Begins with a digit.
_2fa(a?: { [k: string]: any }): Promise<any>
// (__proto__) Would be the prototype.
__proto___(a?: { [k: string]: any }): Promise<any>
// A word of the language.
class(a?: { [k: string]: any }): Promise<any>
// (get-user) By dash.
get_user_5d95(a?: { [k: string]: any }): Promise<any>
// (get.user) By dot.
get_user_9c02(a?: { [k: string]: any }): Promise<any>
// By underscore.
get_user(a?: { [k: string]: any }): Promise<any>
// Likewise.
naïve(a?: { [k: string]: any }): Promise<any>
// A constructor, if it were not quoted.
"new"(a?: { [k: string]: any }): Promise<any>
// (then) Would be awaited.
then_(a?: { [k: string]: any }): Promise<any>
// An identifier like any other.
日本語(a?: { [k: string]: any }): Promise<any>
}
