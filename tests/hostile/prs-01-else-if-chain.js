// case: PRS-01
// expect: script_error | engine_fault | ok | limit:stack
// expand: yes
let n = 0;
{{"if(0)n=1;else " * 10000}}n=2;
return n;
