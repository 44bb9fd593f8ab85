// The names that `for (… in of)` goes through, for a loop that goes through them one by one.
(function () {
  "use strict";
  return function* (of) {
    for (const name in of) yield name;
  };
})
