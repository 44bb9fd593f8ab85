async function one(id) {
  try {
    const result = await files.read({ id });
    if (!result.next) throw new Error("no next");
    return result;
  } catch (error) {
    return { id, error: error.message };
  }
}
const results = await Promise.allSettled([one(1), one(2)]);
return results.map((result) => result.value?.error);
