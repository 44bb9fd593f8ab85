const Job = (name) => ({ name });
return new Job("a");
