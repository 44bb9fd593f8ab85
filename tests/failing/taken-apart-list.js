const answer = { pair: undefined, other: 1 };
const [first, second] = answer.pair;
return first + second;
