const [[first]] = [1];
return first;
