const wait = () => new Promise((done, fail) => setTimeout(() => fail('too late'), 5));
return await wait();
