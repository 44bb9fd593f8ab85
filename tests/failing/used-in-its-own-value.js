const limit = Math.min(10, limit);
return limit;
