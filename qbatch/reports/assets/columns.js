"use strict";
// The jobs of the page, from its JSON to typed arrays, and the series over time that follow from them.

const KINDS = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f8: Float64Array };

/** Unpack one column: base64, deflated, possibly stored as differences. */
async function unpacked(column) {
  const bytes = Uint8Array.from(atob(column.data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const raw = new KINDS[column.type](await new Response(stream).arrayBuffer());
  if (raw.length !== column.length) throw new Error("a column is damaged");
  if (!column.delta) return raw;
  const whole = new Int32Array(raw.length);
  for (let at = 0, sum = 0; at < raw.length; at++) whole[at] = sum = (sum + raw[at]) | 0;
  return whole;
}

async function unpackedAll(columns) {
  const found = {};
  for (const name of Object.keys(columns)) found[name] = await unpacked(columns[name]);
  return found;
}

/** A step function: values[i] from at[i] on, with its running area, so that a mean over any span is two look-ups. */
class Steps {
  constructor(begin, end, weight) {
    const rising = sortedPlaces(begin), falling = sortedPlaces(end);
    const count = begin.length;
    this.at = new Float64Array(2 * count);
    this.values = new Float64Array(2 * count);
    this.area = new Float64Array(2 * count);
    let value = 0;
    for (let i = 0, j = 0, k = 0; k < 2 * count; k++) {
      const ends = i >= count || end[falling[j]] <= begin[rising[i]];
      const job = ends ? falling[j++] : rising[i++];
      this.at[k] = ends ? end[job] : begin[job];
      this.area[k] = k ? this.area[k - 1] + value * (this.at[k] - this.at[k - 1]) : 0;
      value += (ends ? -1 : 1) * (weight ? weight[job] : 1);
      this.values[k] = value;
    }
  }

  /** The index of the last step at or before an instant; -1 before all. */
  place(time) {
    let low = 0, high = this.at.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  areaTo(time) {
    const at = this.place(time);
    return at < 0 ? 0 : this.area[at] + this.values[at] * (time - this.at[at]);
  }

  mean(begin, end) {
    return (this.areaTo(end) - this.areaTo(begin)) / (end - begin);
  }

  value(time) {
    const at = this.place(time);
    return at < 0 ? 0 : this.values[at];
  }

  most(begin, end) {
    let highest = this.value(begin);
    for (let at = this.place(begin) + 1; at < this.at.length && this.at[at] < end; at++) {
      // Only the last of several steps at one instant counts.
      if (this.at[at + 1] !== this.at[at] && this.values[at] > highest) highest = this.values[at];
    }
    return highest;
  }
}

function sortedPlaces(values) {
  return Uint32Array.from(values.keys()).sort((one, other) => values[one] - values[other] || one - other);
}

function joined(one, other) {
  const whole = new Float64Array(one.length + other.length);
  whole.set(one);
  whole.set(other, one.length);
  return whole;
}

/** One policy's jobs: the columns that all policies share, its own, and the processors in use and waiting jobs over time. */
function policyOf(told, table, columns) {
  const jobs = { ...table, ...columns, name: told.policy, count: columns.start.length };
  jobs.order = sortedPlaces(jobs.start);
  jobs.rank = new Uint32Array(jobs.count);
  jobs.order.forEach((job, rank) => { jobs.rank[job] = rank; });
  if (jobs.piece_begin) {  // some were suspended or resized: the boxes show the use, and some jobs waited more than once
    jobs.used = new Steps(jobs.piece_begin, jobs.piece_end, jobs.piece_high.map((high, piece) => high - jobs.piece_low[piece]));
    jobs.waiting = new Steps(joined(jobs.submit, jobs.again_begin), joined(jobs.start, jobs.again_end), null);
  } else {
    jobs.used = new Steps(jobs.start, jobs.end, jobs.procs);
    jobs.waiting = new Steps(jobs.submit, jobs.start, null);
    jobs.piece_begin = Float64Array.from(jobs.piece_job, (job) => jobs.start[job]);
    jobs.piece_end = Float64Array.from(jobs.piece_job, (job) => jobs.end[job]);
  }
  jobs.firstPiece = new Int32Array(jobs.count).fill(-1);
  for (let piece = jobs.piece_job.length - 1; piece >= 0; piece--) jobs.firstPiece[jobs.piece_job[piece]] = piece;
  return jobs;
}

/** Read the page's data for the chart. */
async function readData() {
  const data = JSON.parse(document.getElementById("gantt-data").textContent);
  const tables = [];
  for (const table of data.tables) tables.push(await unpackedAll(table));
  data.jobs = [];
  for (const told of data.policies) data.jobs.push(policyOf(told, tables[told.table], await unpackedAll(told.columns)));
  data.last = Math.max(1, ...data.jobs.map((jobs) => jobs.end.reduce((most, end) => Math.max(most, end), 0)));
  return data;
}

/** How long a job waited: with several execution intervals, all the time in which it did not advance. */
function waited(jobs, job) {
  const isInPieces = jobs.piece_count && jobs.piece_count[job] > 0;
  return isInPieces ? jobs.end[job] - jobs.submit[job] - jobs.run[job] : jobs.start[job] - jobs.submit[job];
}

function boundedSlowdown(jobs, job) {
  return (jobs.end[job] - jobs.submit[job]) / Math.max(jobs.run[job], 10);
}

const SLOWDOWN_EDGES = [1, 2, 10, 100, 1000];
const TOP = 6;

/** Up to six classes of sizes, from 1 processor to the whole machine: powers of two, several per class on a large one. */
function sizeClasses(height) {
  const powers = Math.ceil(Math.log2(Math.max(height, 2)));
  const each = Math.max(1, Math.ceil((powers + 1) / TOP));
  const tops = [];
  for (let power = each - 1; tops.length === 0 || tops[tops.length - 1] < height; power += each) tops.push(Math.min(2 ** power, height));
  return tops;
}

/** The meaning of colours: a code for each job, and for each code its words and its CSS variable. */
function colouring(data, jobs, by) {
  const code = new Uint8Array(jobs.count);
  if (by === "kind") {
    const seen = data.kinds.map((kind) => [kind, { "in order": "--s0", immediate: "--s5", backfilled: "--s1" }[kind]]);
    for (let job = 0; job < jobs.count; job++) code[job] = jobs.kind[job] < 0 ? seen.length : jobs.kind[job];
    return present(code, [...seen, ["unknown", "--other"]]);
  }
  if (by === "slowdown") {
    for (let job = 0; job < jobs.count; job++) {
      const slowdown = boundedSlowdown(jobs, job);
      code[job] = SLOWDOWN_EDGES.filter((edge) => slowdown > edge).length;
    }
    const words = ["at most 1", "1 to 2", "2 to 10", "10 to 100", "100 to 1,000", "above 1,000"];
    return present(code, words.map((word, at) => [word, `--h${at}`]));
  }
  if (by === "size") {
    const tops = sizeClasses(data.height);
    for (let job = 0; job < jobs.count; job++) code[job] = tops.findIndex((top) => jobs.procs[job] <= top);
    const words = tops.map((top, at) => {
      const least = at ? tops[at - 1] + 1 : 1;
      return `${least === top ? top : `${least} to ${top}`} processor${top === 1 ? "" : "s"}`;
    });
    return present(code, words.map((word, at) => [word, `--h${at}`]));
  }
  const work = new Map();
  for (let job = 0; job < jobs.count; job++) {
    const key = jobs[by][job];
    work.set(key, (work.get(key) || 0) + jobs.procs[job] * (jobs.end[job] - jobs.start[job]));
  }
  const top = [...work].sort((one, other) => other[1] - one[1] || one[0] - other[0]).slice(0, TOP).map(([key]) => key);
  for (let job = 0; job < jobs.count; job++) {
    const place = top.indexOf(jobs[by][job]);
    code[job] = place < 0 ? TOP : place;
  }
  const groups = Array.from({ length: TOP }, (_, at) => [top[at] < 0 ? `no ${by}` : `${by} ${top[at]}`, `--s${at}`]);
  return present(code, [...groups, [`${work.size - top.length} others`, "--other"]]);
}

function present(code, groups) {
  const counts = new Uint32Array(groups.length);
  for (const one of code) counts[one]++;
  return { code, groups: groups.map(([words, variable], at) => ({ words, variable, jobs: counts[at] })) };
}
