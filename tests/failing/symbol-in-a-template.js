const kind = Symbol("open");
const say = (it) => `it is ${it}`;
return say(kind);
