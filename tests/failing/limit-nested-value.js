let list = [];
for (let i = 0; i < 5000; i++) list = [list];
const text = JSON.stringify(list);
return text.length;
