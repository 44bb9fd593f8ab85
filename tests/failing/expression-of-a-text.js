const term = "call(";
return ["call(x)"].filter((line) => new RegExp(term).test(line));
