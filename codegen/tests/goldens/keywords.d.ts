type int = number
type Filter = // A condition.
 | {
  all: Filter[] // Each must hold.
 }
 | { field: string; is: string|number }
type Node = { // One node.
 label: string
 next?: Node // The one after.
}
declare const words: {
// Optional and nullable are two things.
absence(a: {
 must: string
 may?: string
 must_or_null: string|null
 may_or_null?: string|null
 old_nullable?: string|null
}): Promise<any>
// Enums and constants.
choices(a?: {
 level?: "low"|""|"high" // ="low"
 mixed?: "auto"|0|1.5|true|null
 only?: 7
 pair?: { "a": [1, "x"] }
 some?: ("a"|"b")[] // items <=2; unique
}): Promise<any>
// Nothing is fetched.
elsewhere(a?: { out?: any; missing?: any; self?: any; odd?: any }): Promise<any>
// What stands beside a type.
facts(a?: {
 count?: int // =10; 1..100; How many.
 ratio?: number // >0, <1
 step?: number // multiple of 0.5
 name?: string // len 2..10; /^[a-z]+$/; e.g. "ab", "abc"
 mail?: string // email
 image?: string // base64 image/png
 tags?: string[] // items >=1; each: len >=1; each: One word each.
 old?: string // DEPRECATED; Use `name`.
 wrong_default?: string
}): Promise<any>
// Keys that nobody names.
maps(a?: {
 by_name?: { [k: string]: number } // values: 0..1
 headers?: { [k: `x-${string}`]: string }
 two_kinds?: { [k: `s_${string}`]: string; [k: `n_${string}`]: number }
 named_and_more?: {
  id?: string
  [k: string]: any // other keys: int
 }
 closed?: { id?: string }
 listed?: { left?: boolean; right?: boolean }
 short_keys?: { [k: string]: any }
 anything?: any
}): Promise<any>
// As older drafts write them.
old_tuples(a?: { pair?: [string, boolean]; head?: [string?, ...null[]] }): Promise<any>
// What holds together.
parts(a?: {
 both?: { a: string; b?: number }
 narrowed?: string // len <=5; Said here. Said there.
}): Promise<any>
// Types that contain themselves.
recursion(a?: { filter?: Filter; tree?: Node }): Promise<any>
// A wrapped result.
results(a?: { [k: string]: any }): Promise<{
 id: int // Its number.
 tags?: ("a"|"b")[]
}[]>
// Rules that a type cannot express. Arguments: dependentRequired {"a": ["b"]}
rules(a?: {
 a?: string // not {"const": "root"}
 b?: any[] // contains {"const": 1}
 c?: { x?: string; y?: string } // at least one of x, y
 d?: { kind?: string } // if {"properties": {"kind": {"const": "long"}}}; then {"required": ["length"]}
}): Promise<any>
// Places in an array.
tuples(a?: {
 range?: [int, int] // [0]: First.
 open?: [string?, ...number[]]
}): Promise<any>
// Alternatives, told apart or not.
unions(a?: {
 place?:
  | {
   kind: "file"
   path: string // Below the root.
  }
  | {
   kind: "url"
   url: string // uri
  }
 id?: int|string
 when?: "now"|string // (2) date-time; "now": At once. (2) Then.
}): Promise<any>
}
