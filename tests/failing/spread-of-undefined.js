const defaults = { tags: ['a'] };
return [...defaults.tags, ...defaults.labels];
