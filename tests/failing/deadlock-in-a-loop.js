for await (const it of [Promise.resolve(1), new Promise(() => {})]) {
  console.log(it);
}
