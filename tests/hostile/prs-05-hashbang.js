// case: PRS-05
// expect: ok | script_error
// value: 1
// strip header: yes
#!/usr/bin/env node
return 1;
