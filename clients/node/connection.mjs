// JSON-RPC with airlock: requests with cancellation and progress, and requests from airlock.
//
// A transport has `send(message)`, which rejects if the message or its answer is lost, and calls
// `onmessage(message)` and `onend(error)`.

import { AirlockError } from "./errors.mjs";

const METHOD_NOT_FOUND = -32601;
const INTERNAL_ERROR = -32603;

export class Connection {
  #transport;
  #handlers;
  #lastId = 0;
  /** The open requests to airlock, by id. */
  #pending = new Map();
  /** The open requests from airlock, by id. */
  #answering = new Map();
  #ended;

  /** `handlers` has a function for each method that airlock may request. */
  constructor(transport, handlers) {
    this.#transport = transport;
    this.#handlers = handlers;
    transport.onmessage = (message) => this.#receive(message);
    transport.onend = (error) => this.end(error);
  }

  request(method, params = {}, { signal, onProgress } = {}) {
    if (this.#ended) return Promise.reject(this.#ended);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const id = ++this.#lastId;
    if (onProgress) params = { ...params, _meta: { ...params._meta, progressToken: id } };
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#take(id);
        this.notify("notifications/cancelled", { requestId: id, reason: String(signal.reason) });
        reject(signal.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      const release = () => signal?.removeEventListener("abort", abort);
      this.#pending.set(id, { method, resolve, reject, onProgress, release });
      this.#transport
        .send({ jsonrpc: "2.0", id, method, params })
        .catch((error) => this.#take(id)?.reject(error));
    });
  }

  /** Sends a notification. A lost one changes nothing: its request ends with the connection. */
  notify(method, params = {}) {
    this.#transport.send({ jsonrpc: "2.0", method, params }).catch(() => {});
  }

  /** Ends all open requests, and all later ones, with this error. */
  end(error) {
    if (this.#ended) return;
    this.#ended = error;
    for (const id of [...this.#pending.keys()]) this.#take(id).reject(error);
    for (const controller of this.#answering.values()) controller.abort(error);
  }

  #take(id) {
    const open = this.#pending.get(id);
    this.#pending.delete(id);
    open?.release();
    return open;
  }

  #receive(message) {
    if (message.method === undefined) this.#settle(message);
    else if (message.id === undefined) this.#notified(message);
    else void this.#answer(message);
  }

  #settle({ id, result, error }) {
    const open = this.#take(id);
    if (!open) return;
    if (!error) return open.resolve(result);
    open.reject(
      new AirlockError("request-failed", {
        what: `airlock refused the request ${open.method}`,
        why: `${error.message} (${error.code})`,
        next: "correct the request",
      }),
    );
  }

  #notified({ method, params }) {
    if (method === "notifications/cancelled") {
      this.#answering.get(params?.requestId)?.abort(new Error("airlock no longer needs an answer"));
    } else if (method === "notifications/progress") {
      const { progressToken, ...progress } = params;
      this.#pending.get(progressToken)?.onProgress?.(progress);
    }
  }

  async #answer({ id, method, params }) {
    const controller = new AbortController();
    this.#answering.set(id, controller);
    const answer = await this.#handle(method, params ?? {}, controller.signal);
    this.#answering.delete(id);
    if (controller.signal.aborted) return;
    this.#transport.send({ jsonrpc: "2.0", id, ...answer }).catch(() => {});
  }

  async #handle(method, params, signal) {
    if (method === "ping") return { result: {} };
    const handler = this.#handlers[method];
    if (!handler) return { error: { code: METHOD_NOT_FOUND, message: `unknown method ${method}` } };
    try {
      return { result: await handler(params, signal) };
    } catch (error) {
      return { error: { code: INTERNAL_ERROR, message: String(error?.message ?? error) } };
    }
  }
}
