const rows = [{ at: { day: 2 } }, { at: { day: 1 } }, {}];
return rows.sort((a, b) => a.at.day - b.at.day);
