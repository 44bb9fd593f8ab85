try {
  JSON.parse('{');
} catch (error) {
  throw new Error('the answer is no JSON', { cause: error });
}
