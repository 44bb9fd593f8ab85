const ids = async () => ['a', 'b'];
for (const id of ids()) console.log(id);
