// case: RES-05
// expect: script_error
throw { message: "looks like an error", code: "denied", stack: "at home" };
