class Job {
  #state = "open";
  static of(it) {
    return it.#state;
  }
}
return Job.of({ state: "open" });
