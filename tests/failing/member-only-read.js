"use strict";
const job = { get state() { return "open" } };
job.state = "closed";
return job;
