const list = [1, 2];
list.length = list.length - 3;
return list;
