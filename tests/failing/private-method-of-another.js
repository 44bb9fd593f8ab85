class Job {
  #close() {}
  end(other) {
    other.#close();
  }
}
new Job().end({ id: 1 });
