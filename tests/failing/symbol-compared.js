return [3, Symbol("a"), 1].sort((a, b) => a - b)
