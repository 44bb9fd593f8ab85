let low, high;
const bounds = {};
({ low, high } = bounds.limits);
return high - low;
