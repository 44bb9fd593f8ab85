// case: PRS-01
// expect: script_error | engine_fault | ok | limit:stack
// kept mib max: 96
// why: the process's allocator keeps what the reading of so long a script once needed
// expand: yes
return ({{"0," * 50000}}1);
