const [first] = 42;
return first;
