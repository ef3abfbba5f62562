// Instants for readers: dates in the log's own zone if its clock is known, else days of the log.

const DAY = 86400;
const STEPS = [60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
const MONTH_STEPS = [1, 2, 3, 6, 12, 24, 60, 120];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

class Timeline {
  constructor(clock) {
    this.clock = clock;
    this.offsets = new Map();
    this.parts = null;
    if (clock.unix !== null) {
      const shape = { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric",
        second: "numeric", hourCycle: "h23" };
      try {
        this.parts = new Intl.DateTimeFormat("en-US", { ...shape, timeZone: clock.zone || "UTC" });
      } catch {
        this.parts = new Intl.DateTimeFormat("en-US", { ...shape, timeZone: "UTC" });
      }
    }
  }

  /** Seconds of the clock on the wall, as if its zone were UTC. */
  wall(time) {
    if (!this.parts) return this.clock.log + time;
    return this.clock.unix + time + this.offset(time);
  }

  /** Offset of the zone from UTC, in seconds; it changes on quarters of an hour only. */
  offset(time) {
    if (!this.parts) return 0;
    const quarter = Math.floor((this.clock.unix + time) / 900);
    if (!this.offsets.has(quarter)) {
      const found = {};
      for (const { type, value } of this.parts.formatToParts(quarter * 900000)) found[type] = Number(value);
      const wall = Date.UTC(found.year, found.month - 1, found.day, found.hour, found.minute, found.second) / 1000;
      if (this.offsets.size > 5000) this.offsets.clear();
      this.offsets.set(quarter, wall - quarter * 900);
    }
    return this.offsets.get(quarter);
  }

  /** The time of the page for a time of the wall clock. */
  fromWall(wall) {
    if (!this.parts) return wall - this.clock.log;
    const guess = wall - this.clock.unix;
    return guess - this.offset(guess - this.offset(guess));
  }

  text(time) {
    const wall = this.wall(time);
    if (!this.parts) return `day ${Math.floor(wall / DAY) + 1}, ${clockText(wall)}`;
    return `${new Date(wall * 1000).toISOString().slice(0, 10)} ${clockText(wall)}`;
  }

  /** At most a given number of marks between two instants: [time, text, whether it is a large one]. */
  ticks(begin, end, most) {
    const step = STEPS.find((one) => (end - begin) / one <= most);
    if (step === undefined && this.parts) return this.monthTicks(begin, end, most);
    const size = step || Math.ceil((end - begin) / most / (14 * DAY)) * 14 * DAY;
    const shift = size >= 7 * DAY && this.parts ? 4 * DAY : 0;  // weeks begin on Mondays
    const ticks = [];
    for (let wall = Math.ceil((this.wall(begin) - shift) / size) * size + shift; ; wall += size) {
      const time = this.fromWall(wall);
      if (time > end) return ticks;
      if (time >= begin) ticks.push([time, this.tickText(wall, size)]);
    }
  }

  tickText(wall, size) {
    if (!this.parts) {
      return size >= DAY ? `day ${Math.floor(wall / DAY) + 1}` : wall % DAY ? clockText(wall) : `day ${wall / DAY + 1}`;
    }
    const date = new Date(wall * 1000);
    return wall % DAY ? clockText(wall) : `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  }

  monthTicks(begin, end, most) {
    const first = new Date(this.wall(begin) * 1000);
    const months = (end - begin) / (30.44 * DAY);
    const step = MONTH_STEPS.find((one) => months / one <= most) || 240;
    const ticks = [];
    for (let month = Math.ceil((first.getUTCFullYear() * 12 + first.getUTCMonth()) / step) * step; ; month += step) {
      const wall = Date.UTC(Math.floor(month / 12), month % 12, 1) / 1000;
      const time = this.fromWall(wall);
      if (time > end) return ticks;
      const year = Math.floor(month / 12);
      const text = step % 12 === 0 ? `${year}` : `${MONTHS[month % 12]}${month % 12 ? "" : ` ${year}`}`;
      if (time >= begin) ticks.push([time, text]);
    }
  }
}

function clockText(wall) {
  const inDay = ((wall % DAY) + DAY) % DAY;
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  const text = `${two(inDay / 3600)}:${two((inDay % 3600) / 60)}`;
  return inDay % 60 ? `${text}:${two(inDay % 60)}` : text;
}

/** A length of time in a suitable unit. */
function durationText(seconds) {
  for (const [size, unit] of [[DAY, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Number((seconds / size).toPrecision(3))} ${unit}`;
  }
  return `${Number(seconds.toPrecision(3))} s`;
}
