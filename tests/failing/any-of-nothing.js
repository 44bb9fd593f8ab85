const first = await Promise.any([]);
return first;
