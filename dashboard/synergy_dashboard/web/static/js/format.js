// Numbers with their units, times and names in words.

const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
const GIB = 2 ** 30;

/** As kubectl writes ages: 45s, 2m5s, 12m, 3h20m, 4d. */
export function duration(seconds) {
  const left = Math.max(0, Math.round(seconds));
  if (left < 120) return `${left}s`;
  const place = UNITS.findIndex(([size]) => left >= size);
  const [size, unit] = UNITS[place];
  const [smaller, smallerUnit] = UNITS[place + 1];
  const whole = Math.floor(left / size);
  const rest = left % size;
  return whole < 10 && rest >= smaller ? `${whole}${unit}${Math.floor(rest / smaller)}${smallerUnit}` : `${whole}${unit}`;
}

/** A difference with its sign. */
export const difference = (seconds) => `${seconds < 0 ? "−" : "+"}${duration(Math.abs(seconds))}`;

const whole = new Intl.NumberFormat("en");
export const number = (value) => whole.format(Math.round(value));
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;
export const percent = (part) => `${(100 * part).toFixed(part > 0 && part < 0.1 ? 1 : 0)} %`;
export const ofTotal = (part, total) => (total > 0 ? percent(part / total) : "–");
export const digits = (value) => Number(value.toPrecision(3)).toString();
export const cpus = (millis) => `${digits(millis / 1000)} CPU`;
export const gib = (bytes) => `${digits(bytes / GIB)} GiB`;
export const inGib = (bytes) => Number(digits(bytes / GIB));
export const speed = (steps) => `${steps >= 1000 ? number(steps) : digits(steps)} steps/s`;
export const hours = (value) => `${value >= 100 ? number(value) : digits(value)} h`;
export const gpus = (value) => count(value, "GPU");
export const factor = (value) => `${value.toFixed(2)}×`;

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const dayClock = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const full = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });

/** The time of day, with the date where that is not `now`'s. */
export function moment(seconds, now) {
  const at = new Date(1000 * seconds);
  const near = Math.abs(seconds - now) < 12 * 3600 || at.toDateString() === new Date(1000 * now).toDateString();
  return (near ? clock : dayClock).format(at);
}
export const fullMoment = (seconds) => full.format(new Date(1000 * seconds));

/** A reason's CamelCase in words: WaitingForRoom gives Waiting for room, NoGPUNodes gives No GPU nodes. */
export function words(name) {
  const parts = name.match(/[A-Z]{2,}(?![a-z])|[A-Z]?[a-z0-9]+/g) ?? [name];
  return parts.map((one, place) => (place > 0 && !/^[A-Z]{2,}$/.test(one) ? one.toLowerCase() : one)).join(" ");
}

export const types = (names) => (names.length ? names.join(", ") : "any");
export const jobLink = (name) => `#/job/${name.split("/").map(encodeURIComponent).join("/")}`;
export const shortName = (name) => name.slice(name.indexOf("/") + 1);
