// `Intl` for en-US, the only supported locale: the functions that its classes share, and the small
// classes. Requests for other locales get en-US.
(function (native) {
  const { TypeError, RangeError, Symbol, Number, Array, String } = globalThis;
  const { defineProperty, keys } = Object;
  const { apply, construct } = Reflect;
  const uncurry = (method) => Function.prototype.call.bind(method);
  const exec = uncurry(RegExp.prototype.exec);
  const lower = uncurry(String.prototype.toLowerCase);
  const upper = uncurry(String.prototype.toUpperCase);
  const cut = uncurry(String.prototype.slice);
  const split = uncurry(String.prototype.split);
  const join = uncurry(Array.prototype.join);
  const push = uncurry(Array.prototype.push);
  const includes = uncurry(Array.prototype.includes);
  const isFinite = Number.isFinite;
  const { abs } = Math;
  const LOCALE = "en-US";

  const Intl = {};
  defineProperty(Intl, Symbol.toStringTag, { value: "Intl", configurable: true });
  const method = (object, name, value) =>
    defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });
  method(globalThis, "Intl", Intl);

  const TAG = /^(?:[a-z]{2,3}|[a-z]{5,8})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|\d{3}))?(?:-(?:[a-z0-9]{5,8}|\d[a-z0-9]{3}))*(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?$/i;

  // Normalises a language tag: `EN-latn-us` becomes `en-Latn-US`.
  const canonical = (tag) => {
    if (typeof tag !== "string" && (tag === null || typeof tag !== "object")) {
      throw new TypeError("a locale is a string such as \"en-US\"");
    }
    const text = `${tag}`;
    if (exec(TAG, text) === null) throw new RangeError(`'${text}' is not a language tag; one is \"en-US\"`);
    const parts = split(lower(text), "-");
    let extended = false;
    for (let at = 1; at < parts.length; at += 1) {
      const part = parts[at];
      extended ||= part.length === 1;
      if (extended) break;
      if (part.length === 2) parts[at] = upper(part);
      else if (part.length === 4 && part[0] >= "a") parts[at] = upper(part[0]) + cut(part, 1);
    }
    return join(parts, "-");
  };
  const canonicalAll = (locales) => {
    if (locales === undefined) return [];
    if (locales === null) throw new TypeError("a locale is a string such as \"en-US\"");
    if (typeof locales === "string") return [canonical(locales)];
    const tags = [];
    for (let at = 0; at < locales.length; at += 1) {
      if (!(at in locales)) continue;
      const tag = canonical(locales[at]);
      if (!includes(tags, tag)) push(tags, tag);
    }
    return tags;
  };
  const supported = (locales) => {
    const found = [];
    for (const tag of canonicalAll(locales)) if (tag === "en" || cut(tag, 0, 3) === "en-") push(found, tag);
    return found;
  };

  // Functions that read options: each value must be one of a few words.
  const optionsOf = (options) => {
    if (options === null) throw new TypeError("the options are null");
    return options === undefined ? { __proto__: null } : Object(options);
  };
  const word = (options, name, allowed, fallback) => {
    const value = options[name];
    if (value === undefined) return fallback;
    const text = `${value}`;
    if (!includes(allowed, text)) {
      throw new RangeError(`'${text}' is no value of the option ${name}; these are: ${join(allowed, ", ")}`);
    }
    return text;
  };
  const count = (options, name, least, most, fallback) => {
    const value = options[name];
    if (value === undefined) return fallback;
    const number = +value;
    if (!(number >= least && number <= most)) {
      throw new RangeError(`the option ${name} is a number from ${least} to ${most}`);
    }
    return Math.floor(number);
  };
  const flag = (options, name) => {
    const value = options[name];
    return value === undefined ? undefined : Boolean(value);
  };

  // Adds a class to `Intl`; some classes may be called without `new`.
  const offer = (name, Class, withoutNew) => {
    let offered = Class;
    if (withoutNew) {
      offered = { [name]: function (locales, options) {
        return construct(Class, [locales, options], new.target ?? offered);
      } }[name];
      defineProperty(offered, "prototype", { value: Class.prototype, writable: false });
      method(Class.prototype, "constructor", offered);
    }
    defineProperty(offered, "length", { value: 0, configurable: true });
    method(offered, "supportedLocalesOf", { supportedLocalesOf(locales) { return supported(locales); } }.supportedLocalesOf);
    defineProperty(Class.prototype, Symbol.toStringTag, { value: `Intl.${name}`, configurable: true });
    method(Intl, name, offered);
  };

  const textOf = (parts) => {
    let text = "";
    for (let at = 0; at < parts.length; at += 1) text += parts[at].value;
    return text;
  };

  // Functions for the files that are loaded later.
  native.intl = { LOCALE, Intl, method, canonicalAll, optionsOf, word, count, flag, offer, textOf };

  method(Intl, "getCanonicalLocales", { getCanonicalLocales(locales) { return canonicalAll(locales); } }.getCanonicalLocales);

  // Collator, and the comparison of texts. The guest's `collation` does the comparison.
  const SENSITIVITIES = ["base", "accent", "case", "variant"];
  const collate = native.collate;
  const BYTES = { __proto__: null, base: 0, accent: 1, case: 2, variant: 3 };
  const collation = (options) => {
    const asked = optionsOf(options);
    const usage = word(asked, "usage", ["sort", "search"], "sort");
    const numeric = flag(asked, "numeric") ?? false;
    const caseFirst = word(asked, "caseFirst", ["upper", "lower", "false"], "false");
    const sensitivity = word(asked, "sensitivity", SENSITIVITIES, "variant");
    const ignorePunctuation = flag(asked, "ignorePunctuation") ?? false;
    const how = BYTES[sensitivity] + (numeric ? 4 : 0) + (caseFirst === "upper" ? 8 : 0) + (ignorePunctuation ? 16 : 0);
    return { how, shown: { locale: LOCALE, usage, sensitivity, ignorePunctuation, collation: "default", numeric, caseFirst } };
  };
  const numericTag = (locales) => {
    for (const tag of canonicalAll(locales)) if (exec(/-u(?:-[a-z0-9]+)*?-kn(?:-true)?(?=-[a-z0-9]{2}(?:-|$)|$)/, tag) !== null) return true;
    return false;
  };
  const VARIANT = 3;
  class Collator {
    #how;
    #shown;
    #compare;
    constructor(locales, options) {
      const asked = optionsOf(options);
      const kn = numericTag(locales);
      const { how, shown } = collation(asked);
      const numeric = kn && asked.numeric === undefined;
      this.#how = numeric ? how | 4 : how;
      this.#shown = numeric ? { ...shown, numeric } : shown;
    }
    get compare() {
      const how = this.#how;
      return (this.#compare ??= (one, other) => collate(`${one}`, `${other}`, how));
    }
    resolvedOptions() { return { ...this.#shown }; }
  }
  offer("Collator", Collator, true);
  const ofLength = (length, of) => defineProperty(of, "length", { value: length, configurable: true });
  native.intl.ofLength = ofLength;
  method(String.prototype, "localeCompare", ofLength(1, {
    localeCompare(that, locales, options) {
      if (this === undefined || this === null) throw new TypeError("localeCompare of null or undefined");
      if (options === undefined && (locales === undefined || locales === LOCALE)) {
        return collate(`${this}`, `${that}`, VARIANT);
      }
      const kn = numericTag(locales) && options?.numeric === undefined;
      return collate(`${this}`, `${that}`, collation(options).how | (kn ? 4 : 0));
    },
  }.localeCompare));

  // PluralRules
  const ORDINALS = { __proto__: null, 1: "one", 2: "two", 3: "few" };
  class PluralRules {
    #type;
    #digits;
    constructor(locales, options) {
      canonicalAll(locales);
      const asked = optionsOf(options);
      this.#type = word(asked, "type", ["cardinal", "ordinal"], "cardinal");
      this.#digits = native.intl.digits(asked);
    }
    select(value) {
      const number = abs(+value);
      if (this.#type === "ordinal") {
        const tens = number % 100;
        if (tens >= 11 && tens <= 13) return "other";
        return ORDINALS[number % 10] ?? "other";
      }
      // `1.0` has the plural form: the written form of the number decides.
      return isFinite(number) && native.intl.written(number, this.#digits) === "1" ? "one" : "other";
    }
    resolvedOptions() {
      return {
        locale: LOCALE,
        type: this.#type,
        pluralCategories: this.#type === "ordinal" ? ["few", "one", "two", "other"] : ["one", "other"],
      };
    }
  }
  offer("PluralRules", PluralRules, false);

  // ListFormat
  class ListFormat {
    #type;
    #style;
    constructor(locales, options) {
      canonicalAll(locales);
      const asked = optionsOf(options);
      this.#type = word(asked, "type", ["conjunction", "disjunction", "unit"], "conjunction");
      this.#style = word(asked, "style", ["long", "short", "narrow"], "long");
    }
    formatToParts(list) {
      const items = [];
      for (const item of list ?? []) {
        if (typeof item !== "string") throw new TypeError("a list to format needs strings");
        push(items, item);
      }
      const isUnit = this.#type === "unit";
      const between = isUnit && this.#style === "narrow" ? " " : ", ";
      let link = "";
      if (this.#type === "disjunction") link = "or ";
      else if (!isUnit && this.#style === "long") link = "and ";
      else if (!isUnit && this.#style === "short") link = "& ";
      const two = link === "" ? between : ` ${link}`;
      const parts = [];
      for (let at = 0; at < items.length; at += 1) {
        if (at > 0) {
          const isLast = at === items.length - 1;
          const value = isLast ? (items.length === 2 ? two : between + link) : between;
          push(parts, { type: "literal", value });
        }
        push(parts, { type: "element", value: items[at] });
      }
      return parts;
    }
    format(list) { return textOf(this.formatToParts(list)); }
    resolvedOptions() { return { locale: LOCALE, type: this.#type, style: this.#style }; }
  }
  offer("ListFormat", ListFormat, false);

  // RelativeTimeFormat
  const SHORT = { __proto__: null, second: "sec.", minute: "min.", hour: "hr.", day: "day", week: "wk.", month: "mo.", quarter: "qtr.", year: "yr." };
  const NARROW = { __proto__: null, second: "s", minute: "m", hour: "h", day: "d", week: "w", month: "mo", quarter: "q", year: "y" };
  const SHORT_PLURAL = { __proto__: null, day: "days", quarter: "qtrs." };
  const NAMED = {
    __proto__: null,
    day: ["yesterday", "today", "tomorrow"],
    hour: [undefined, "this hour"],
    minute: [undefined, "this minute"],
    second: [undefined, "now"],
  };
  class RelativeTimeFormat {
    #style;
    #auto;
    constructor(locales, options) {
      canonicalAll(locales);
      const asked = optionsOf(options);
      this.#style = word(asked, "style", ["long", "short", "narrow"], "long");
      this.#auto = word(asked, "numeric", ["always", "auto"], "always") === "auto";
    }
    format(value, unit) {
      const number = +value;
      if (!isFinite(number)) throw new RangeError("the time must be finite");
      let name = `${unit}`;
      if (name[name.length - 1] === "s") name = cut(name, 0, -1);
      if (!(name in SHORT)) {
        throw new RangeError(`'${unit}' is no unit of a relative time; these are: ${join(keys(SHORT), ", ")}`);
      }
      const style = this.#style;
      if (this.#auto && (number === 0 || number === 1 || number === -1)) {
        const spelt = style === "long" ? name : SHORT[name];
        const named = name in NAMED ? NAMED[name][number + 1] : [`last ${spelt}`, `this ${spelt}`, `next ${spelt}`][number + 1];
        if (named !== undefined) return named;
      }
      const past = number < 0 || (number === 0 && 1 / number < 0);
      const digits = native.intl.written(abs(number));
      let what;
      if (style === "narrow") what = digits + NARROW[name];
      else if (style === "long") what = `${digits} ${name}${digits === "1" ? "" : "s"}`;
      else {
        const spelt = SHORT[name];
        const plural = SHORT_PLURAL[name] ?? spelt;
        what = `${digits} ${digits === "1" ? spelt : plural}`;
      }
      return past ? `${what} ago` : `in ${what}`;
    }
    resolvedOptions() {
      return { locale: LOCALE, style: this.#style, numeric: this.#auto ? "auto" : "always", numberingSystem: "latn" };
    }
  }
  offer("RelativeTimeFormat", RelativeTimeFormat, false);

  for (const [local, plain] of [["toLocaleUpperCase", upper], ["toLocaleLowerCase", lower]]) {
    method(String.prototype, local, ofLength(0, {
      [local](locales) {
        if (this === undefined || this === null) throw new TypeError(`${local} of null or undefined`);
        canonicalAll(locales);
        return plain(this);
      },
    }[local]));
  }
})
