// run with --limit cpu=300ms
const found = await demo.logs_query({});
const queue = [...found.entries];
while (queue.length > 0) {
  queue.push(queue.shift());
}
return queue;
