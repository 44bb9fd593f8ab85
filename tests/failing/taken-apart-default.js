const { a: { b } } = input ?? {};
return b;
