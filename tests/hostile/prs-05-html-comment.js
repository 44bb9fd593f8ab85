// case: PRS-05
// expect: ok | script_error
// why: sloppy scripts may carry HTML comments; whatever is made of them, nothing hides in them
let n = 1;
<!-- n = 2;
return n;
