attempt(() => JSON.parse("[".repeat(5000)));
attempt(() => JSON.parse("[".repeat(5000) + "]".repeat(5000)).length);
attempt(() => JSON.parse("[".repeat(512) + "]".repeat(512)).length);
