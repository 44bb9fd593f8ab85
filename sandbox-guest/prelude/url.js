// `URL` and `URLSearchParams`. A URL is stored as its normalised text; its parts are extracted
// from the text on access.
(function ({ urlParse, urlPart, urlWith, formParse, formText }) {
  const { defineProperty } = Object;
  const { TypeError, Symbol } = globalThis;
  const uncurry = (method) => Function.prototype.call.bind(method);
  const push = uncurry(Array.prototype.push);
  const splice = uncurry(Array.prototype.splice);
  const { apply } = Reflect;
  const iterator = Symbol.iterator;
  const text = (value) => `${value}`;

  // Lets a URL update its parameters without a notification back to the URL.
  let adopt;
  let owned;

  class URLSearchParams {
    // Names and values alternately.
    #parts = [];
    #url = null;
    static {
      adopt = (params, query) => { params.#parts = formParse(query); };
      owned = (query, url) => {
        const params = new URLSearchParams();
        params.#parts = formParse(query);
        params.#url = url;
        return params;
      };
    }
    constructor(init = "") {
      if (init !== null && typeof init === "object") {
        if (typeof init[iterator] === "function") {
          for (const pair of init) {
            const [name, value] = pair;
            this.append(name, value);
          }
        } else {
          for (const name of Object.keys(init)) this.append(name, init[name]);
        }
      } else {
        const query = text(init);
        this.#parts = formParse(query[0] === "?" ? query.slice(1) : query);
      }
    }
    #changed() {
      if (this.#url !== null) this.#url.search = this.toString();
    }
    get size() { return this.#parts.length / 2; }
    append(name, value) {
      push(this.#parts, text(name), text(value));
      this.#changed();
    }
    delete(name, value) {
      name = text(name);
      for (let at = this.#parts.length - 2; at >= 0; at -= 2) {
        if (this.#parts[at] === name && (value === undefined || this.#parts[at + 1] === text(value))) {
          splice(this.#parts, at, 2);
        }
      }
      this.#changed();
    }
    get(name) {
      name = text(name);
      for (let at = 0; at < this.#parts.length; at += 2) {
        if (this.#parts[at] === name) return this.#parts[at + 1];
      }
      return null;
    }
    getAll(name) {
      name = text(name);
      const values = [];
      for (let at = 0; at < this.#parts.length; at += 2) {
        if (this.#parts[at] === name) push(values, this.#parts[at + 1]);
      }
      return values;
    }
    has(name, value) {
      const values = this.getAll(name);
      return value === undefined ? values.length > 0 : values.includes(text(value));
    }
    set(name, value) {
      name = text(name);
      let found = false;
      for (let at = 0; at < this.#parts.length; at += 2) {
        if (this.#parts[at] !== name) continue;
        if (found) {
          splice(this.#parts, at, 2);
          at -= 2;
        } else {
          this.#parts[at + 1] = text(value);
          found = true;
        }
      }
      if (!found) push(this.#parts, name, text(value));
      this.#changed();
    }
    sort() {
      const pairs = [...this].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      this.#parts = pairs.flat();
      this.#changed();
    }
    forEach(callback, self) {
      for (const [name, value] of this) apply(callback, self, [value, name, this]);
    }
    *entries() {
      for (let at = 0; at < this.#parts.length; at += 2) yield [this.#parts[at], this.#parts[at + 1]];
    }
    *keys() { for (const [name] of this) yield name; }
    *values() { for (const [, value] of this) yield value; }
    [iterator]() { return this.entries(); }
    toString() { return formText(...this.#parts); }
  }

  class URL {
    #href;
    #params = null;
    constructor(address, base) {
      const href = urlParse(text(address), base === undefined ? undefined : text(base));
      if (href === null) throw new TypeError(`'${address}' is not a URL${base === undefined ? "" : " here"}`);
      this.#href = href;
    }
    static canParse(address, base) {
      return urlParse(text(address), base === undefined ? undefined : text(base)) !== null;
    }
    static parse(address, base) {
      return URL.canParse(address, base) ? new URL(address, base) : null;
    }
    get href() { return this.#href; }
    set href(value) {
      const href = urlParse(text(value));
      if (href === null) throw new TypeError(`'${value}' is not a URL`);
      this.#href = href;
      if (this.#params !== null) adopt(this.#params, this.search.slice(1));
    }
    get origin() { return urlPart(this.#href, "origin"); }
    get search() { return urlPart(this.#href, "search"); }
    set search(value) {
      this.#href = urlWith(this.#href, "search", text(value));
      if (this.#params !== null) adopt(this.#params, this.search.slice(1));
    }
    get searchParams() { return (this.#params ??= owned(this.search.slice(1), this)); }
    static {
      for (const name of ["protocol", "username", "password", "host", "hostname", "port", "pathname", "hash"]) {
        defineProperty(URL.prototype, name, {
          get() { return urlPart(this.#href, name); },
          set(value) { this.#href = urlWith(this.#href, name, text(value)); },
          enumerable: true,
          configurable: true,
        });
      }
    }
    toString() { return this.#href; }
    toJSON() { return this.#href; }
  }

  for (const [name, value] of [["URL", URL], ["URLSearchParams", URLSearchParams]]) {
    defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
  }
})
