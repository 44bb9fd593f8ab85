// `Intl.NumberFormat`, and the conversion of numbers and lists to text. A number is rounded as the
// shortest decimal that names it, so 1.005 with two decimals is 1.01.
(function (native) {
  const { TypeError, RangeError, Number, BigInt, Array, String, Object } = globalThis;
  const { LOCALE, Intl, method, canonicalAll, optionsOf, word, count, offer, textOf, ofLength } = native.intl;
  const uncurry = (method) => Function.prototype.call.bind(method);
  const exec = uncurry(RegExp.prototype.exec);
  const cut = uncurry(String.prototype.slice);
  const upper = uncurry(String.prototype.toUpperCase);
  const indexOf = uncurry(String.prototype.indexOf);
  const repeat = uncurry(String.prototype.repeat);
  const split = uncurry(String.prototype.split);
  const push = uncurry(Array.prototype.push);
  const pop = uncurry(Array.prototype.pop);
  const includes = uncurry(Array.prototype.includes);
  const join = uncurry(Array.prototype.join);
  const textOfBigInt = uncurry(BigInt.prototype.toString);
  const valueOfBigInt = uncurry(BigInt.prototype.valueOf);
  const valueOfNumber = uncurry(Number.prototype.valueOf);
  const isFinite = Number.isFinite;
  const { floor, max, min } = Math;

  // The symbols of en-US for currencies, if they differ from the code.
  const table = (text) => {
    const made = { __proto__: null };
    for (const pair of split(text, " ")) {
      const at = indexOf(pair, "=");
      made[cut(pair, 0, at)] = cut(pair, at + 1);
    }
    return made;
  };
  const SYMBOLS = table("AUD=A$ BRL=R$ CAD=CA$ CNY=CN¥ EUR=€ GBP=£ HKD=HK$ ILS=₪ INR=₹ JPY=¥ KRW=₩ MXN=MX$ NZD=NZ$ PHP=₱ TWD=NT$ USD=$ VND=₫ XAF=FCFA XCD=EC$ XCG=Cg. XOF=F\u202fCFA XPF=CFPF");
  const NARROW_SYMBOLS = table("AFN=؋ AMD=֏ AOA=Kz ARS=$ AUD=$ AZN=₼ BAM=KM BBD=$ BDT=৳ BMD=$ BND=$ BOB=Bs BSD=$ BWP=P BZD=$ CAD=$ CLP=$ CNY=¥ COP=$ CRC=₡ CUC=$ CUP=$ CZK=Kč DKK=kr DOP=$ EGP=E£ FJD=$ FKP=£ GEL=₾ GHS=GH₵ GIP=£ GNF=FG GTQ=Q GYD=$ HKD=$ HNL=L HRK=kn HUF=Ft IDR=Rp ISK=kr JMD=$ KGS=⃀ KHR=៛ KMF=CF KPW=₩ KYD=$ KZT=₸ LAK=₭ LBP=L£ LKR=Rs LRD=$ MGA=Ar MMK=K MNT=₮ MUR=Rs MXN=$ MYR=RM NAD=$ NGN=₦ NIO=C$ NOK=kr NPR=Rs NZD=$ PKR=Rs PLN=zł PYG=₲ RON=lei RUB=₽ RWF=RF SBD=$ SEK=kr SGD=$ SHP=£ SRD=$ SSP=£ STN=Db SYP=£ THB=฿ TOP=T$ TRY=₺ TTD=$ TWD=$ UAH=₴ UYU=$ XCD=$ ZAR=R ZMW=ZK");
  const WITHOUT_CENTS = split("AFN ALL BIF CLP COP DJF GNF HUF IDR IQD IRR ISK JPY KMF KPW KRW LAK LBP MGA MMK PKR PYG RWF SLL SOS SYP UGX VND VUV XAF XOF XPF YER", " ");
  const THREE_DECIMALS = split("BHD JOD KWD LYD OMR TND", " ");
  const NAMES = table("USD=US_dollars EUR=euros GBP=British_pounds JPY=Japanese_yen CHF=Swiss_francs CAD=Canadian_dollars AUD=Australian_dollars CNY=Chinese_yuan INR=Indian_rupees KRW=South_Korean_won SEK=Swedish_kronor NOK=Norwegian_kroner DKK=Danish_kroner PLN=Polish_zlotys CZK=Czech_korunas HUF=Hungarian_forints BRL=Brazilian_reals MXN=Mexican_pesos ZAR=South_African_rand SGD=Singapore_dollars HKD=Hong_Kong_dollars NZD=New_Zealand_dollars TRY=Turkish_Lira ILS=Israeli_new_shekels THB=Thai_baht AED=UAE_dirhams SAR=Saudi_riyals RUB=Russian_rubles UAH=Ukrainian_hryvnias TWD=New_Taiwan_dollars PHP=Philippine_pesos IDR=Indonesian_rupiahs MYR=Malaysian_ringgits VND=Vietnamese_dong");
  const NAMES_OF_ONE = table("USD=US_dollar EUR=euro GBP=British_pound CHF=Swiss_franc CAD=Canadian_dollar AUD=Australian_dollar INR=Indian_rupee SEK=Swedish_krona NOK=Norwegian_krone DKK=Danish_krone PLN=Polish_zloty CZK=Czech_koruna HUF=Hungarian_forint BRL=Brazilian_real MXN=Mexican_peso SGD=Singapore_dollar HKD=Hong_Kong_dollar NZD=New_Zealand_dollar ILS=Israeli_new_shekel AED=UAE_dirham SAR=Saudi_riyal RUB=Russian_ruble UAH=Ukrainian_hryvnia TWD=New_Taiwan_dollar PHP=Philippine_peso IDR=Indonesian_rupiah MYR=Malaysian_ringgit");

  // Units: the short form, the narrow form if it differs, and irregular plurals.
  const UNITS = { __proto__: null };
  for (const line of split("acre ac|bit bit|byte byte B|celsius °C °C|centimeter cm|day day d|degree deg °|fahrenheit °F °|fluid-ounce fl_oz|foot ft ′|gallon gal|gigabit Gb|gigabyte GB|gram g|hectare ha|hour hr h|inch in ″|kilobit kb|kilobyte kB|kilogram kg|kilometer km|liter L|megabit Mb|megabyte MB|meter m|microsecond μs|mile mi|mile-scandinavian smi|milliliter mL|millimeter mm|millisecond ms|minute min m|month mth m|nanosecond ns|ounce oz|percent % %|petabyte PB|pound lb #|second sec s|stone st|terabit Tb|terabyte TB|week wk w|yard yd|year yr y", "|")) {
    const [name, short, narrow = short] = split(line, " ");
    UNITS[name] = { short: join(split(short, "_"), " "), narrow: join(split(narrow, "_"), " ") };
  }
  const TIGHT = ["celsius", "fahrenheit", "percent"];
  const PLURALS = table("foot=feet inch=inches stone=stones percent=percent mile-scandinavian=miles-scandinavian");
  const SHORT_PLURALS = table("day=days month=mths week=wks year=yrs");
  const PER = table("second=s minute=min hour=h day=d week=w month=m year=y");
  const longUnit = (name, isOne) => {
    if (name === "celsius") return `degree${isOne ? "" : "s"} Celsius`;
    if (name === "fahrenheit") return `degree${isOne ? "" : "s"} Fahrenheit`;
    if (isOne) return join(split(name, name === "fluid-ounce" ? "-" : "\0"), " ");
    return name === "fluid-ounce" ? "fluid ounces" : PLURALS[name] ?? `${name}s`;
  };
  // Returns the text after the number, and whether a space precedes it.
  const unitOf = (unit, display, isOne) => {
    const at = indexOf(unit, "-per-");
    const name = at < 0 ? unit : cut(unit, 0, at);
    const per = at < 0 ? undefined : cut(unit, at + 5);
    if (display === "long") {
      return [" ", longUnit(name, isOne) + (per === undefined ? "" : ` per ${longUnit(per, true)}`)];
    }
    const space = display === "short" && !includes(TIGHT, name) ? " " : "";
    if (unit === "mile-per-hour") return [space, "mph"];
    if (unit === "mile-per-gallon") return [space, "mpg"];
    const plain = UNITS[name][display];
    if (per !== undefined) return [space, `${plain}/${PER[per] ?? UNITS[per].narrow}`];
    return [space, display === "short" && !isOne ? SHORT_PLURALS[name] ?? plain : plain];
  };

  const STYLES = ["decimal", "percent", "currency", "unit"];
  const ROUNDINGS = ["ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven"];
  const resolve = (options) => {
    const asked = optionsOf(options);
    const settings = { __proto__: null };
    const style = (settings.style = word(asked, "style", STYLES, "decimal"));
    const currency = asked.currency;
    if (currency !== undefined && exec(/^[a-z]{3}$/i, `${currency}`) === null) {
      throw new RangeError(`'${currency}' is not a currency; one is "USD"`);
    }
    if (style === "currency" && currency === undefined) {
      throw new TypeError("the style \"currency\" needs the option currency, such as \"USD\"");
    }
    const currencyDisplay = word(asked, "currencyDisplay", ["code", "symbol", "narrowSymbol", "name"], "symbol");
    const currencySign = word(asked, "currencySign", ["standard", "accounting"], "standard");
    const unit = asked.unit;
    if (unit !== undefined) {
      const at = indexOf(`${unit}`, "-per-");
      const parts = at < 0 ? [`${unit}`] : [cut(`${unit}`, 0, at), cut(`${unit}`, at + 5)];
      for (const part of parts) if (!(part in UNITS)) throw new RangeError(`'${unit}' is not a unit; one is "megabyte"`);
    }
    if (style === "unit" && unit === undefined) {
      throw new TypeError("the style \"unit\" needs the option unit, such as \"megabyte\"");
    }
    const unitDisplay = word(asked, "unitDisplay", ["short", "narrow", "long"], "short");
    if (style === "currency") {
      settings.currency = upper(`${currency}`);
      settings.currencyDisplay = currencyDisplay;
      settings.currencySign = currencySign;
    }
    if (style === "unit") {
      settings.unit = `${unit}`;
      settings.unitDisplay = unitDisplay;
    }
    const notation = word(asked, "notation", ["standard", "scientific", "engineering", "compact"], "standard");
    let least = 0;
    let most = style === "percent" ? 0 : 3;
    if (style === "currency" && notation === "standard") {
      const code = settings.currency;
      least = most = includes(WITHOUT_CENTS, code) ? 0 : includes(THREE_DECIMALS, code) ? 3 : 2;
    }
    resolveDigits(settings, asked, { notation, least, most });
    settings.notation = notation;
    const compactDisplay = word(asked, "compactDisplay", ["short", "long"], "short");
    if (notation === "compact") settings.compactDisplay = compactDisplay;
    settings.useGrouping = grouping(asked.useGrouping, notation === "compact" ? "min2" : "auto");
    settings.signDisplay = word(asked, "signDisplay", ["auto", "never", "always", "exceptZero", "negative"], "auto");
    settings.isPlain = isPlain(settings);
    return settings;
  };
  // Whether the guest's native function, if it has one, can format the number.
  const isPlain = (settings) => native.numberText !== undefined && settings.style === "decimal" &&
    settings.notation === "standard" && settings.useGrouping === "auto" && settings.signDisplay === "auto" &&
    settings.roundingMode === "halfExpand" && settings.roundingIncrement === 1 && settings.trailingZeroDisplay === "auto" &&
    settings.minimumIntegerDigits === 1 && settings.maximumFractionDigits !== undefined &&
    settings.maximumSignificantDigits === undefined;
  const grouping = (value, fallback) => {
    if (value === undefined) return fallback;
    if (value === true) return "always";
    if (value === false || value === null || value === 0 || value === "") return false;
    const text = `${value}`;
    if (text === "true" || text === "false") return fallback;
    if (!includes(["min2", "auto", "always"], text)) {
      throw new RangeError(`'${text}' is no value of the option useGrouping; these are: min2, auto, always, true, false`);
    }
    return text;
  };
  const resolveDigits = (settings, asked, { notation, least, most }) => {
    settings.minimumIntegerDigits = count(asked, "minimumIntegerDigits", 1, 21, 1);
    const fractionLeast = asked.minimumFractionDigits;
    const fractionMost = asked.maximumFractionDigits;
    const significantLeast = asked.minimumSignificantDigits;
    const significantMost = asked.maximumSignificantDigits;
    settings.roundingIncrement = count(asked, "roundingIncrement", 1, 5000, 1);
    settings.roundingMode = word(asked, "roundingMode", ROUNDINGS, "halfExpand");
    const priority = word(asked, "roundingPriority", ["auto", "morePrecision", "lessPrecision"], "auto");
    settings.trailingZeroDisplay = word(asked, "trailingZeroDisplay", ["auto", "stripIfInteger"], "auto");
    if (settings.roundingIncrement !== 1) throw new RangeError("a roundingIncrement other than 1 is not available here");
    const hasSignificant = significantLeast !== undefined || significantMost !== undefined;
    const hasFraction = fractionLeast !== undefined || fractionMost !== undefined;
    const wantsSignificant = priority !== "auto" || hasSignificant;
    const wantsFraction = priority !== "auto" || !(hasSignificant || (!hasFraction && notation === "compact"));
    if (wantsSignificant) {
      const from = count({ minimumSignificantDigits: significantLeast }, "minimumSignificantDigits", 1, 21, 1);
      settings.minimumSignificantDigits = from;
      settings.maximumSignificantDigits = count({ maximumSignificantDigits: significantMost }, "maximumSignificantDigits", from, 21, 21);
    }
    if (wantsFraction) {
      let from = count({ minimumFractionDigits: fractionLeast }, "minimumFractionDigits", 0, 100, undefined);
      let to = count({ maximumFractionDigits: fractionMost }, "maximumFractionDigits", 0, 100, undefined);
      if (from === undefined) from = to === undefined ? least : min(least, to);
      else if (to === undefined) to = max(most, from);
      else if (from > to) {
        throw new RangeError(`minimumFractionDigits is ${from}, and maximumFractionDigits less: ${to}`);
      }
      settings.minimumFractionDigits = from;
      settings.maximumFractionDigits = to ?? max(most, from);
    }
    if (!wantsSignificant && !wantsFraction) {
      settings.minimumFractionDigits = settings.maximumFractionDigits = 0;
      settings.minimumSignificantDigits = 1;
      settings.maximumSignificantDigits = 2;
      settings.roundingPriority = "morePrecision";
    } else {
      settings.roundingPriority = priority;
    }
  };

  // A number as its digits without zeros at either end. Its value is 0.digits times ten to the
  // power
  // of `point`.
  const decimal = (text) => {
    const match = exec(/^\s*([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d+))?\s*$/i, text);
    if (match === null || match[2] + match[3] === "") return undefined;
    let digits = match[2] + match[3];
    let point = match[2].length + +(match[4] ?? 0);
    let from = 0;
    while (digits[from] === "0") from += 1;
    let to = digits.length;
    while (to > from && digits[to - 1] === "0") to -= 1;
    digits = cut(digits, from, to);
    point = digits === "" ? 0 : point - from;
    return { isNegative: match[1] === "-", digits, point };
  };
  // A BigInt and a string keep all their digits.
  const given = (value) => {
    if (typeof value === "object" && value !== null) value = toPrimitive(value);
    if (typeof value === "bigint") return decimal(textOfBigInt(value));
    if (typeof value === "string") {
      const exact = decimal(value);
      if (exact !== undefined && exact.point < 400 && exact.point > -400) return exact;
    }
    const number = +value;
    if (isFinite(number)) {
      const made = decimal(`${number}`);
      made.isNegative = number < 0 || (number === 0 && 1 / number < 0);
      return made;
    }
    return { isNegative: number < 0, special: number === number ? "∞" : "NaN" };
  };
  const toPrimitive = (value) => {
    const exotic = value[Symbol.toPrimitive];
    if (exotic !== undefined && exotic !== null) return Reflect.apply(exotic, value, ["number"]);
    for (const name of ["valueOf", "toString"]) {
      const convert = value[name];
      if (typeof convert !== "function") continue;
      const made = Reflect.apply(convert, value, []);
      if (made === null || (typeof made !== "object" && typeof made !== "function")) return made;
    }
    throw new TypeError("cannot convert object to number");
  };

  const goesUp = (number, at, mode) => {
    const { digits, isNegative } = number;
    if (at >= digits.length) return false;
    if (mode === "trunc") return false;
    if (mode === "expand") return true;
    if (mode === "ceil") return !isNegative;
    if (mode === "floor") return isNegative;
    const first = at < 0 ? "0" : digits[at];
    if (first !== "5" || at + 1 < digits.length) return first >= "5";
    if (mode === "halfTrunc") return false;
    if (mode === "halfCeil") return !isNegative;
    if (mode === "halfFloor") return isNegative;
    if (mode === "halfEven") return at > 0 && +digits[at - 1] % 2 === 1;
    return true;
  };
  // Keeps the first `length` digits, rounded.
  const keep = (number, length, mode) => {
    const { digits } = number;
    if (length >= digits.length) return number;
    const up = goesUp(number, length, mode);
    let kept = cut(digits, 0, max(length, 0));
    let { point } = number;
    if (up) {
      if (length < 0) {
        kept = "1";
        point += 1 - length;
      } else {
        let at = kept.length - 1;
        while (at >= 0 && kept[at] === "9") at -= 1;
        if (at < 0) {
          kept = "1";
          point += 1;
        } else {
          kept = cut(kept, 0, at) + `${+kept[at] + 1}`;
        }
      }
    }
    let to = kept.length;
    while (to > 0 && kept[to - 1] === "0") to -= 1;
    return { isNegative: number.isNegative, digits: cut(kept, 0, to), point: to === 0 ? 0 : point };
  };
  // Rounds; returns the number and the minimum number of decimals shown.
  const round = (number, settings) => {
    const mode = settings.roundingMode;
    const bySignificant = () => {
      const made = keep(number, settings.maximumSignificantDigits, mode);
      const ones = made.digits === "" ? 1 : made.point;
      return [made, max(settings.minimumSignificantDigits - ones, 0)];
    };
    const byFraction = () =>
      [keep(number, number.point + settings.maximumFractionDigits, mode), settings.minimumFractionDigits];
    if (settings.maximumFractionDigits === undefined) return bySignificant();
    if (settings.maximumSignificantDigits === undefined) return byFraction();
    const significantPlace = number.point - settings.maximumSignificantDigits;
    const significantIsFiner = significantPlace <= -settings.maximumFractionDigits;
    const wantsFiner = settings.roundingPriority === "morePrecision";
    return significantIsFiner === wantsFiner ? bySignificant() : byFraction();
  };

  const THOUSANDS = [["", ""], ["K", " thousand"], ["M", " million"], ["B", " billion"], ["T", " trillion"]];
  const exponentOf = (number, notation) => {
    if (number.digits === "") return 0;
    const power = number.point - 1;
    if (notation === "scientific") return power;
    if (notation === "engineering") return floor(power / 3) * 3;
    return max(0, min(floor(power / 3) * 3, 12));
  };
  // Returns the number, its decimals, and the power of ten with which it is shown.
  const scaled = (number, settings) => {
    const { notation } = settings;
    if (notation === "standard") return [...round(number, settings), 0];
    let exponent = exponentOf(number, notation);
    const shifted = () => ({ ...number, point: number.digits === "" ? 0 : number.point - exponent });
    let made = round(shifted(), settings);
    // A number that was rounded up to a thousand gets the next unit.
    const next = exponentOf({ digits: made[0].digits, point: made[0].point + exponent }, notation);
    if (next !== exponent) {
      exponent = next;
      made = round(shifted(), settings);
    }
    return [...made, exponent];
  };

  const pushInteger = (parts, integer, settings) => {
    const { useGrouping } = settings;
    const isGrouped = useGrouping !== false && integer.length > (useGrouping === "min2" ? 4 : 3);
    if (!isGrouped) return push(parts, { type: "integer", value: integer });
    let at = integer.length % 3 || 3;
    push(parts, { type: "integer", value: cut(integer, 0, at) });
    for (; at < integer.length; at += 3) {
      push(parts, { type: "group", value: "," }, { type: "integer", value: cut(integer, at, at + 3) });
    }
  };
  const pushDigits = (parts, [number, leastDecimals, exponent], settings) => {
    const { digits, point } = number;
    let integer = point <= 0 ? "0" : digits.length <= point ? digits + repeat("0", point - digits.length) : cut(digits, 0, point);
    let fraction = point < 0 ? repeat("0", -point) + digits : cut(digits, max(point, 0));
    const least = settings.minimumIntegerDigits;
    if (integer.length < least) integer = repeat("0", least - integer.length) + integer;
    if (fraction.length < leastDecimals && !(fraction === "" && settings.trailingZeroDisplay === "stripIfInteger")) {
      fraction += repeat("0", leastDecimals - fraction.length);
    }
    pushInteger(parts, integer, settings);
    if (fraction !== "") push(parts, { type: "decimal", value: "." }, { type: "fraction", value: fraction });
    const { notation } = settings;
    if (notation === "compact" && exponent > 0) {
      const [short, long] = THOUSANDS[exponent / 3];
      if (settings.compactDisplay === "long" && settings.style !== "currency") push(parts, { type: "literal", value: " " }, { type: "compact", value: cut(long, 1) });
      else push(parts, { type: "compact", value: short });
    }
    if (notation === "scientific" || notation === "engineering") {
      push(parts, { type: "exponentSeparator", value: "E" });
      if (exponent < 0) push(parts, { type: "exponentMinusSign", value: "-" });
      push(parts, { type: "exponentInteger", value: `${exponent < 0 ? -exponent : exponent}` });
    }
    return digits === "1" && point === 1 && fraction === "" && exponent === 0;
  };

  const signOf = (isNegative, isZero, isNaN, display) => {
    if (display === "never") return "";
    if (display === "negative") return isNegative && !isZero ? "-" : "";
    if (display === "exceptZero") return isZero || isNaN ? "" : isNegative ? "-" : "+";
    if (isNegative) return "-";
    return display === "always" ? "+" : "";
  };
  const currencyOf = ({ currency, currencyDisplay }) => {
    if (currencyDisplay === "symbol") return SYMBOLS[currency] ?? currency;
    if (currencyDisplay === "narrowSymbol") return NARROW_SYMBOLS[currency] ?? SYMBOLS[currency] ?? currency;
    return currency;
  };
  const spaced = (name) => join(split(name, "_"), " ");

  const partsOf = (value, settings) => {
    let number = given(value);
    const { style } = settings;
    const body = [];
    let isZero = false;
    let isOne = false;
    if (number.special !== undefined) {
      push(body, { type: number.special === "∞" ? "infinity" : "nan", value: number.special });
    } else {
      if (style === "percent" && number.digits !== "") number = { ...number, point: number.point + 2 };
      const made = scaled(number, settings);
      isZero = made[0].digits === "";
      isOne = pushDigits(body, made, settings);
    }
    const sign = signOf(number.isNegative, isZero, number.special === "NaN", settings.signDisplay);
    const parts = [];
    const inBrackets = sign === "-" && style === "currency" && settings.currencySign === "accounting" && settings.currencyDisplay !== "name";
    if (inBrackets) push(parts, { type: "literal", value: "(" });
    else if (sign !== "") push(parts, { type: sign === "-" ? "minusSign" : "plusSign", value: sign });
    if (style === "currency" && settings.currencyDisplay !== "name") {
      const shown = currencyOf(settings);
      push(parts, { type: "currency", value: shown });
      if (number.special === undefined && exec(/[A-Za-z.\u010d\u0142]$/, shown) !== null) push(parts, { type: "literal", value: "\u00a0" });
    }
    for (let at = 0; at < body.length; at += 1) push(parts, body[at]);
    if (inBrackets) push(parts, { type: "literal", value: ")" });
    if (style === "percent") push(parts, { type: "percentSign", value: "%" });
    if (style === "currency" && settings.currencyDisplay === "name") {
      const { currency } = settings;
      const name = (isOne ? NAMES_OF_ONE[currency] : undefined) ?? NAMES[currency] ?? currency;
      push(parts, { type: "literal", value: " " }, { type: "currency", value: spaced(name) });
    }
    if (style === "unit") {
      const [space, shown] = unitOf(settings.unit, settings.unitDisplay, isOne);
      if (space !== "") push(parts, { type: "literal", value: space });
      push(parts, { type: settings.unit === "percent" && shown === "%" ? "percentSign" : "unit", value: shown });
    }
    return parts;
  };

  const texted = (value, settings) => {
    const quick = settings.isPlain && typeof value === "number"
      ? native.numberText(value, settings.minimumFractionDigits, settings.maximumFractionDigits)
      : undefined;
    return quick ?? textOf(partsOf(value, settings));
  };

  const PLAIN = resolve(undefined);
  const SHOWN = ["style", "currency", "currencyDisplay", "currencySign", "unit", "unitDisplay", "minimumIntegerDigits",
    "minimumFractionDigits", "maximumFractionDigits", "minimumSignificantDigits", "maximumSignificantDigits", "useGrouping",
    "notation", "compactDisplay", "signDisplay", "roundingIncrement", "roundingMode", "roundingPriority", "trailingZeroDisplay"];
  class NumberFormat {
    #settings;
    #format;
    constructor(locales, options) {
      canonicalAll(locales);
      this.#settings = resolve(options);
    }
    get format() {
      const settings = this.#settings;
      return (this.#format ??= (value) => texted(value, settings));
    }
    formatToParts(value) { return partsOf(value, this.#settings); }
    resolvedOptions() {
      const shown = { locale: LOCALE, numberingSystem: "latn" };
      for (const name of SHOWN) if (this.#settings[name] !== undefined) shown[name] = this.#settings[name];
      return shown;
    }
  }
  offer("NumberFormat", NumberFormat, true);

  // The written form of a number, for code that depends on it.
  native.intl.written = (number, settings = PLAIN) => texted(number, settings);
  // The written form with some of the options; leading zeros are ignored.
  native.intl.digits = (asked) => {
    const { style, notation, useGrouping, signDisplay } = PLAIN;
    const settings = { __proto__: null, style, notation, useGrouping, signDisplay };
    resolveDigits(settings, asked, { notation: "standard", least: 0, most: 3 });
    settings.minimumIntegerDigits = 1;
    return settings;
  };

  const settingsOf = (locales, options) => {
    if (locales !== undefined && locales !== LOCALE) canonicalAll(locales);
    return options === undefined ? PLAIN : resolve(options);
  };
  method(Number.prototype, "toLocaleString", ofLength(0, {
    toLocaleString(locales, options) { return texted(valueOfNumber(this), settingsOf(locales, options)); },
  }.toLocaleString));
  // The lists that are being converted; a list inside itself is omitted.
  const written = [];
  method(Array.prototype, "toLocaleString", ofLength(0, {
    toLocaleString(locales, options) {
      const list = Object(this);
      if (includes(written, list)) return "";
      push(written, list);
      try {
        let text = "";
        for (let at = 0; at < list.length; at += 1) {
          if (at > 0) text += ",";
          const item = list[at];
          if (item !== undefined && item !== null) text += item.toLocaleString(locales, options);
        }
        return text;
      } finally {
        pop(written);
      }
    },
  }.toLocaleString));
  method(BigInt.prototype, "toLocaleString", ofLength(0, {
    toLocaleString(locales, options) { return textOf(partsOf(valueOfBigInt(this), settingsOf(locales, options))); },
  }.toLocaleString));
})
