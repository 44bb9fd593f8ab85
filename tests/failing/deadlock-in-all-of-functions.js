const wait = async (n) => {
  await new Promise((go) => {
    if (n > 1) go();
  });
};
await Promise.all([1, 2, 0].map((n) => wait(n)));
