// case: RES-01
// expect: ok | script_error
return [1n, 2n ** 60n, 10n ** 40n];
