declare const evil: {
// (close*\/comment) Ends here *\/ } evil() /* and goes on with gnihton hidden
close__comment(a?: {
 "a\n//b"?: string // first second third
 __proto__?: "*/"|"line\nbreak"|"\u202e"
 pattern?: string // /a b/
}): Promise<any>
elsewhere(a?: { x?: any }): Promise<any>
endless(a?: { x?: any }): Promise<any>
nonsense(a?: { x?: any; y?: any; z?: never; w?: any[] }): Promise<any>
}
