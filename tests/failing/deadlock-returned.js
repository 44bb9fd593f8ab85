const ask = () => new Promise(() => {});
return ask();
