// Prepended to a script that reached a limit. Each statement, loop iteration and function entry
// calls these functions, which print the location from time to time. The last printed location
// is where the script was stopped.
const { step: look__s, start: look__b, round: look__l, enter: look__f, end: look__e } = (() => {
  const say = console.debug, json = JSON.stringify;
  const rounds = [], entered = [], outer = [];
  let at = 0, loop, steps = 0;
  let next = 1, isExact = false;
  // The active loops, innermost first.
  const around = () => {
    const loops = [];
    for (let one = loop; one !== undefined && loops.length < 64; one = outer[one]) loops.push([one, rounds[one]]);
    return loops;
  };
  const pass = () => {
    steps += 1;
    if (steps < next) return;
    // Prints each of the first 500 steps, then fewer and fewer.
    next = steps + 1 + (!isExact && steps > 500 ? steps >> 5 : 0);
    say('look__' + json({ at, steps, loops: around(), entered: entered.slice(-12) }));
  };
  return {
    step: (place) => {
      at = place;
      pass();
    },
    start: (place) => { rounds[place] = 0 },
    round: (place, inside) => {
      loop = place;
      outer[place] = inside;
      rounds[place] = (rounds[place] ?? 0) + 1;
      pass();
    },
    enter: (place) => {
      at = place;
      entered.push(place);
      if (entered.length > 1000) entered.splice(0, 900);
      pass();
    },
    end: (error) => error,
  };
})();
