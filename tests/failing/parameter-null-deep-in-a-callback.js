const rows = [{ at: { user: { name: "a" } } }, { at: { user: null } }];
return rows.map(({ at: { user: { name } } }) => name);
