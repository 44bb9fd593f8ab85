// Exchanges messages with an airlock that serves over streamable HTTP.

import http from "node:http";
import https from "node:https";

import { AirlockError } from "./errors.mjs";
import { closed } from "./stdio.mjs";

const SESSION = "mcp-session-id";

export class HttpTransport {
  onmessage = () => {};
  onend = () => {};
  #url;
  #headers;
  #open = new Set();

  constructor(url, token) {
    this.#url = new URL(url);
    this.#headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    if (token !== undefined) this.#headers.authorization = `Bearer ${token}`;
  }

  /** Sends a message, and passes on all messages of the answer. */
  async send(message) {
    const body = JSON.stringify(message);
    const response = await this.#request("POST", body);
    const session = response.headers[SESSION];
    if (session) this.#headers[SESSION] = session;
    if (response.statusCode >= 300) throw await this.#refused(response);
    let isAnswered = message.id === undefined || message.method === undefined;
    for await (const received of messages(response)) {
      if (received.id === message.id && received.method === undefined) isAnswered = true;
      if (received.result?.protocolVersion) {
        this.#headers["mcp-protocol-version"] = received.result.protocolVersion;
      }
      this.onmessage(received);
    }
    if (!isAnswered) throw this.#lost(new Error("the connection ended before the answer"));
  }

  async close() {
    if (this.#headers[SESSION]) {
      const response = await this.#request("DELETE").catch(() => undefined);
      response?.resume();
    }
    for (const request of this.#open) request.destroy();
    this.onend(closed());
  }

  #request(method, body) {
    const { request } = this.#url.protocol === "https:" ? https : http;
    return new Promise((resolve, reject) => {
      // A connection of its own: a kept one may have been closed by the other side.
      const options = { method, headers: this.#headers, agent: false };
      const sent = request(this.#url, options, resolve);
      this.#open.add(sent);
      sent.on("close", () => this.#open.delete(sent));
      sent.on("error", (error) => reject(this.#lost(error)));
      sent.end(body);
    });
  }

  #lost(cause) {
    return new AirlockError(
      "connection-lost",
      {
        what: `no answer from airlock at ${this.#url.origin}`,
        why: cause.message || cause.code,
        next: "check that `airlock serve --http` runs there",
      },
      { cause },
    );
  }

  async #refused(response) {
    let text = "";
    for await (const part of response.setEncoding("utf8")) text += part;
    const isToken = response.statusCode === 401;
    return new AirlockError("refused", {
      what: `airlock at ${this.#url.origin} refused the request`,
      why: `HTTP status ${response.statusCode}${text ? `: ${text.trim()}` : ""}`,
      next: isToken ? "pass the token of the server as `token`" : "correct the request",
    });
  }
}

async function* messages(response) {
  response.setEncoding("utf8");
  if (!response.headers["content-type"]?.startsWith("text/event-stream")) {
    let text = "";
    for await (const part of response) text += part;
    if (text.trim()) yield JSON.parse(text);
    return;
  }
  let data = [];
  for await (const line of lines(response)) {
    if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
    if (line === "" && data.join("")) yield JSON.parse(data.join("\n"));
    if (line === "") data = [];
  }
}

async function* lines(response) {
  let parts = [];
  for await (const text of response) {
    const pieces = text.split("\n");
    for (const piece of pieces.slice(0, -1)) {
      yield (parts.join("") + piece).replace(/\r$/, "");
      parts = [];
    }
    parts.push(pieces.at(-1));
  }
}
