const times = [demo.get_time({}), new Promise(() => {}), 3];
const [time] = await Promise.all(times);
return time;
