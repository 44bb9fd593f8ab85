const jobs = { list: null };
return await Promise.all(jobs.list);
