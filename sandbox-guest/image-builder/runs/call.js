return await files.list({ path: "/", deep: true });
