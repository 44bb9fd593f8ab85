// `Intl.DateTimeFormat`, and the conversion of dates to text, for en-US. The time zone of a run is
// UTC.
// Offsets are supported, and named zones if `Temporal` knows them.
(function (native) {
  const { TypeError, RangeError, Date, Array, String } = globalThis;
  const { LOCALE, canonicalAll, optionsOf, word, count, flag, offer, method, textOf, ofLength } = native.intl;
  const uncurry = (method) => Function.prototype.call.bind(method);
  const exec = uncurry(RegExp.prototype.exec);
  const cut = uncurry(String.prototype.slice);
  const padStart = uncurry(String.prototype.padStart);
  const push = uncurry(Array.prototype.push);
  const prototype = Date.prototype;
  const valueOf = uncurry(prototype.valueOf);
  const { now } = Date;
  const { floor, abs } = Math;
  const [yearOf, monthOf, dayOf, weekdayOf, hourOf, minuteOf, secondOf, millisecondOf] =
    ["FullYear", "Month", "Date", "Day", "Hours", "Minutes", "Seconds", "Milliseconds"]
      .map((name) => uncurry(prototype[`getUTC${name}`]));

  const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
  const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  const LENGTHS = { __proto__: null, long: undefined, short: 3, narrow: 1 };

  // Time zones
  const Temporal = globalThis.Temporal;
  const instantOf = Temporal?.Instant.fromEpochMilliseconds;
  const zonedOf = Temporal && uncurry(Temporal.Instant.prototype.toZonedDateTimeISO);
  const getter = (name) => Temporal && uncurry(Object.getOwnPropertyDescriptor(Temporal.ZonedDateTime.prototype, name).get);
  const offsetOf = getter("offsetNanoseconds");
  const zoneOf = getter("timeZoneId");
  const UTC = { name: "UTC", offsetAt: () => 0 };
  const zoneNamed = (asked) => {
    if (asked === undefined) return UTC;
    const name = `${asked}`;
    if (exec(/^(?:Etc\/)?(?:UTC|GMT|UCT|Zulu|Universal|Greenwich)$/i, name) !== null) return UTC;
    const offset = exec(/^([+-])([01]\d|2[0-3])(?::?([0-5]\d))?$/, name);
    if (offset !== null) {
      const minutes = (+offset[2] * 60 + +(offset[3] ?? 0)) * (offset[1] === "-" ? -1 : 1);
      return { name: `${offset[1]}${offset[2]}:${offset[3] ?? "00"}`, offsetAt: () => minutes };
    }
    const unknown = () => new RangeError(`there is no time zone '${name}'`);
    if (exec(/^[A-Za-z][\w+-]*(?:\/[\w+-]+)*$/, name) === null) throw unknown();
    if (Temporal === undefined) {
      throw new RangeError(`the time zone '${name}' is not available here; UTC is, and offsets such as "+02:00"`);
    }
    let canonical;
    try {
      canonical = zoneOf(zonedOf(instantOf(0), name));
    } catch {
      throw unknown();
    }
    return { name: canonical, offsetAt: (time) => floor(offsetOf(zonedOf(instantOf(time), canonical)) / 6e10) };
  };
  const AMERICAN = { __proto__: null };
  for (const [letter, spelt, standard, cities] of [
    ["E", "Eastern", -300, ["New_York", "Detroit", "Toronto"]],
    ["C", "Central", -360, ["Chicago", "Winnipeg"]],
    ["M", "Mountain", -420, ["Denver", "Boise", "Edmonton", "Phoenix"]],
    ["P", "Pacific", -480, ["Los_Angeles", "Vancouver"]],
  ]) for (const city of cities) AMERICAN[`America/${city}`] = { letter, spelt, standard };
  const offsetName = (minutes, isLong) => {
    const sign = minutes < 0 ? "-" : "+";
    const hours = floor(abs(minutes) / 60);
    const rest = abs(minutes) % 60;
    if (isLong) return `GMT${sign}${two(hours)}:${two(rest)}`;
    return `GMT${sign}${hours}${rest === 0 ? "" : `:${two(rest)}`}`;
  };
  const zoneName = (zone, minutes, kind) => {
    if (kind === "longOffset") return offsetName(minutes, true);
    if (kind === "shortOffset") return offsetName(minutes, false);
    if (minutes === 0 && zone !== UTC) return "GMT";
    const isLong = cut(kind, 0, 4) === "long";
    const isGeneric = kind.length > 5;
    if (zone === UTC && !isGeneric) return isLong ? "Coordinated Universal Time" : "UTC";
    const american = AMERICAN[zone.name];
    if (american === undefined) return offsetName(minutes, isLong && zone !== UTC);
    const { letter, spelt, standard } = american;
    if (isGeneric) return isLong ? `${spelt} Time` : `${letter}T`;
    const isStandard = minutes === standard;
    return isLong ? `${spelt} ${isStandard ? "Standard" : "Daylight"} Time` : `${letter}${isStandard ? "S" : "D"}T`;
  };

  // Options
  const TEXTS = ["narrow", "short", "long"];
  const NUMBERS = ["2-digit", "numeric"];
  const DATE_FIELDS = ["weekday", "year", "month", "day"];
  const TIME_FIELDS = ["dayPeriod", "hour", "minute", "second", "fractionalSecondDigits"];
  const ALLOWED = {
    __proto__: null,
    weekday: TEXTS, era: TEXTS, year: NUMBERS, month: [...NUMBERS, ...TEXTS], day: NUMBERS,
    hour: NUMBERS, minute: NUMBERS, second: NUMBERS,
    timeZoneName: ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"],
  };
  const STYLES = ["full", "long", "medium", "short"];
  const DATE_STYLES = {
    __proto__: null,
    full: { weekday: "long", month: "long", day: "numeric", year: "numeric" },
    long: { month: "long", day: "numeric", year: "numeric" },
    medium: { month: "short", day: "numeric", year: "numeric" },
    short: { month: "numeric", day: "numeric", year: "2-digit" },
  };
  const TIME_STYLES = {
    __proto__: null,
    full: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "long" },
    long: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
    medium: { hour: "numeric", minute: "2-digit", second: "2-digit" },
    short: { hour: "numeric", minute: "2-digit" },
  };
  const hasAny = (fields, names) => {
    for (let at = 0; at < names.length; at += 1) if (names[at] in fields) return true;
    return false;
  };
  // `needed` and `added` are `date`, `time` or both (`any`, `all`): the fields of which the script
  // must request at least one, and the fields that are shown if it requests none.
  const resolve = (options, needed, added) => {
    const asked = optionsOf(options);
    const hour12 = flag(asked, "hour12");
    let hourCycle = word(asked, "hourCycle", ["h11", "h12", "h23", "h24"], undefined);
    const zone = zoneNamed(asked.timeZone);
    const fields = { __proto__: null };
    for (const name of ["weekday", "era", "year", "month", "day", "hour", "minute", "second"]) {
      const value = word(asked, name, ALLOWED[name], undefined);
      if (value !== undefined) fields[name] = value;
    }
    if (asked.dayPeriod !== undefined) throw new RangeError("the option dayPeriod is not available here");
    const fraction = count(asked, "fractionalSecondDigits", 1, 3, undefined);
    if (fraction !== undefined) fields.fractionalSecondDigits = fraction;
    const timeZoneName = word(asked, "timeZoneName", ALLOWED.timeZoneName, undefined);
    if (timeZoneName !== undefined) fields.timeZoneName = timeZoneName;
    const dateStyle = word(asked, "dateStyle", STYLES, undefined);
    const timeStyle = word(asked, "timeStyle", STYLES, undefined);
    let shown = fields;
    if (dateStyle !== undefined || timeStyle !== undefined) {
      for (const name in fields) throw new TypeError(`the option ${name} does not go with dateStyle or timeStyle`);
      if (needed === "date" && timeStyle !== undefined) throw new TypeError("toLocaleDateString takes no timeStyle");
      if (needed === "time" && dateStyle !== undefined) throw new TypeError("toLocaleTimeString takes no dateStyle");
      shown = { __proto__: null, ...DATE_STYLES[dateStyle], ...TIME_STYLES[timeStyle] };
    } else {
      const asksDate = hasAny(fields, DATE_FIELDS);
      const asksTime = hasAny(fields, TIME_FIELDS);
      const isEnough = (needed !== "time" && asksDate) || (needed !== "date" && asksTime);
      if (!isEnough) {
        if (added !== "time") fields.year = fields.month = fields.day = "numeric";
        if (added !== "date") fields.hour = fields.minute = fields.second = "numeric";
      }
    }
    if (hour12 !== undefined) hourCycle = hour12 ? "h12" : "h23";
    return { zone, shown, dateStyle, timeStyle, hourCycle: shown.hour === undefined ? undefined : hourCycle ?? "h12" };
  };

  // Texts
  const two = (number) => padStart(`${number}`, 2, "0");
  const named = (names, at, width) => cut(names[at], 0, LENGTHS[width]);
  const literal = (value) => ({ type: "literal", value });
  const yearText = (year, { year: width, era }) => {
    if (era !== undefined && year <= 0) year = 1 - year;
    return width === "2-digit" ? cut(two(abs(year) % 100), -2) : `${year}`;
  };
  const ERAS = { __proto__: null, long: ["Before Christ", "Anno Domini"], short: ["BC", "AD"], narrow: ["B", "A"] };

  const dateParts = (local, shown) => {
    const part = (type, value) => ({ type, value });
    const isNamed = shown.month in LENGTHS;
    const year = shown.year && part("year", yearText(yearOf(local), shown));
    const day = shown.day && part("day", shown.day === "2-digit" ? two(dayOf(local)) : `${dayOf(local)}`);
    const weekday = shown.weekday && part("weekday", named(WEEKDAYS, weekdayOf(local), shown.weekday));
    const number = monthOf(local) + 1;
    const month = shown.month && part("month",
      isNamed ? named(MONTHS, number - 1, shown.month) : shown.month === "2-digit" ? two(number) : `${number}`);
    const parts = [];
    const join = (between, one) => {
      if (one === undefined) return;
      if (parts.length > 0) push(parts, literal(between));
      push(parts, one);
    };
    if (month && day) {
      join("", weekday);
      join(", ", month);
      join(isNamed ? " " : "/", day);
      join(isNamed ? ", " : "/", year);
    } else if (day && year && !weekday) {
      push(parts, year, literal(" (day: "), day, literal(")"));
    } else if (day) {
      join("", day);
      join(" ", weekday);
      join(" ", year);
    } else {
      join("", month);
      join(isNamed ? " " : "/", year);
      join(" ", weekday);
    }
    if (shown.era) join(" ", part("era", ERAS[shown.era][yearOf(local) > 0 ? 1 : 0]));
    return parts;
  };

  const timeParts = (local, shown, hourCycle) => {
    const parts = [];
    const join = (between, type, value) => {
      if (parts.length > 0) push(parts, literal(between));
      push(parts, { type, value });
    };
    const hours = hourOf(local);
    const isHalved = hourCycle === "h11" || hourCycle === "h12";
    if (shown.hour) {
      let hour = isHalved ? hours % 12 : hours;
      if (hour === 0 && hourCycle === "h12") hour = 12;
      if (hour === 0 && hourCycle === "h24") hour = 24;
      join("", "hour", shown.hour === "2-digit" || !isHalved ? two(hour) : `${hour}`);
    }
    if (shown.minute) {
      const minute = minuteOf(local);
      join(":", "minute", shown.hour || shown.second ? two(minute) : `${minute}`);
    }
    if (shown.second) {
      const second = secondOf(local);
      join(":", "second", shown.minute ? two(second) : `${second}`);
    }
    if (shown.fractionalSecondDigits) {
      const digits = padStart(`${millisecondOf(local)}`, 3, "0");
      join(".", "fractionalSecond", cut(digits, 0, shown.fractionalSecondDigits));
    }
    if (shown.hour && isHalved) join(" ", "dayPeriod", hours < 12 ? "AM" : "PM");
    return parts;
  };

  const partsOf = (time, settings) => {
    const { zone, shown, hourCycle } = settings;
    const minutes = zone.offsetAt(time);
    const local = new Date(time + minutes * 60_000);
    const parts = dateParts(local, shown);
    const ofTime = timeParts(local, shown, hourCycle);
    const hasTime = ofTime.length > 0;
    if (parts.length > 0 && hasTime) {
      const isWeekday = parts.length === 1 && shown.weekday !== undefined;
      push(parts, literal(isWeekday ? " " : shown.month === "long" ? " at " : ", "));
    }
    for (let at = 0; at < ofTime.length; at += 1) push(parts, ofTime[at]);
    if (shown.timeZoneName) {
      if (parts.length > 0) push(parts, literal(hasTime ? " " : ", "));
      push(parts, { type: "timeZoneName", value: zoneName(zone, minutes, shown.timeZoneName) });
    }
    return parts;
  };

  // Returns the width with which a field is shown.
  const widthShown = (name, shown, hourCycle) => {
    if (name === "hour" && hourCycle > "h20") return "2-digit";
    if (name !== "minute" && name !== "second") return shown[name];
    const isAlone = name === "minute" ? !shown.hour && !shown.second : !shown.minute;
    return isAlone ? "numeric" : "2-digit";
  };

  const LATEST = 8.64e15;
  const timeOf = (date) => {
    const time = date === undefined ? now() : +date;
    if (!(abs(time) <= LATEST)) throw new RangeError("invalid date");
    return time < 0 ? -floor(-time) : floor(time);
  };
  class DateTimeFormat {
    #settings;
    #format;
    constructor(locales, options) {
      canonicalAll(locales);
      this.#settings = resolve(options, "any", "date");
    }
    get format() {
      const settings = this.#settings;
      return (this.#format ??= (date) => textOf(partsOf(timeOf(date), settings)));
    }
    formatToParts(date) { return partsOf(timeOf(date), this.#settings); }
    resolvedOptions() {
      const { zone, shown, dateStyle, timeStyle, hourCycle } = this.#settings;
      const all = { locale: LOCALE, calendar: "gregory", numberingSystem: "latn", timeZone: zone.name };
      if (hourCycle !== undefined) {
        all.hourCycle = hourCycle;
        all.hour12 = hourCycle === "h11" || hourCycle === "h12";
      }
      if (dateStyle !== undefined) all.dateStyle = dateStyle;
      if (timeStyle !== undefined) all.timeStyle = timeStyle;
      if (dateStyle !== undefined || timeStyle !== undefined) return all;
      for (const name of ["weekday", "era", "year", "month", "day", "hour", "minute", "second", "fractionalSecondDigits", "timeZoneName"]) {
        if (shown[name] === undefined) continue;
        all[name] = widthShown(name, shown, hourCycle);
      }
      return all;
    }
  }
  offer("DateTimeFormat", DateTimeFormat, true);

  for (const [name, needed, added] of [
    ["toLocaleString", "any", "all"], ["toLocaleDateString", "date", "date"], ["toLocaleTimeString", "time", "time"],
  ]) {
    const plain = resolve(undefined, needed, added);
    method(prototype, name, ofLength(0, {
      [name](locales, options) {
        const time = valueOf(this);
        if (locales !== undefined && locales !== LOCALE) canonicalAll(locales);
        const settings = options === undefined ? plain : resolve(options, needed, added);
        return time === time ? textOf(partsOf(time, settings)) : "Invalid Date";
      },
    }[name]));
  }
})
