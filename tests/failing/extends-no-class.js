const Base = { run() {} };
class Job extends Base {}
return new Job();
