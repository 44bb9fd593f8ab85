"use strict";
const options = Object.freeze({ limit: 10 });
options.limit = 20;
return options;
