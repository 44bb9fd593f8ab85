// case: RES-01
// expect: ok | script_error
return ["\ud800", "\udc00x", "ok"];
