return await bench.hang({});
