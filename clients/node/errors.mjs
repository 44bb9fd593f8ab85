// The error that the client throws: what happened, why, and what to do next.

export class AirlockError extends Error {
  constructor(code, { what, why, next }, options) {
    super(`${what}\n  why: ${why}\n next: ${next}`, options);
    this.name = "AirlockError";
    this.code = code;
  }
}
