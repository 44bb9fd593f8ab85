const jobs = {};
await Promise.all(jobs.first).catch(() => 'none');
return jobs.second.length;
