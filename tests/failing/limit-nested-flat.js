const list = [];
list.push(list);
return list.flat(Infinity);
