type int = number
type Filter = { all: Filter[] } | { field: string; is: any }
declare const search: {
// Looks one thing up, by id or by name. Arguments: exactly one of id, name
lookup(a: {
 id?: string
 name?: string // not {"const": "root"}
}): Promise<{
 id: string
 score?: number // >0, <=1; Of the match.
}>
// Runs a query. Arguments: dependentRequired {"range": ["sort"]}; A query and where to run it.
query(a: {
 filter: Filter // What to keep.
 sort?: "name"|"age" // "name": By name. "age": Oldest first.
 range?: [number, number]
 target?: // One of two places.
  | {
   kind: "index"
   name: string // Of the index.
  }
  | {
   kind: "url"
   url: string // uri
  }
 weights?: { [k: string]: number } // values: 0..1; By field.
 headers?: { [k: `x-${string}`]: string }
 extra?: {
  trace?: boolean
  [k: string]: any // other keys: string
 }
 steps?: { // Done in order.
  op: string // What to do.
  n?: int // multiple of 5
 }[]
 mode?: "fast"|"exact"|null
}): Promise<any>
}
