const entries = [1, 2];
return entires.length;
