// The drawing of the chart: jobs on processors, below them the processors in use and the waiting jobs, on one time axis.

const LABELLED = 400;  // most boxes in view that show their numbers

class Drawing {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.data = data;
    this.timeline = new Timeline(data.clock);
    this.begin = 0;
    this.end = data.last;
    this.job = -1;
    this.isWaiting = false;
    this.choose(0, data.colour);
  }

  choose(policy, by) {
    this.policy = policy;
    this.by = by;
    this.jobs = this.data.jobs[policy];
    this.colours = colouring(this.data, this.jobs, by);
    const lists = this.colours.groups.map(() => []);
    this.jobs.piece_job.forEach((job, piece) => lists[this.colours.code[job]].push(piece));
    this.pieces = lists.map((list) => Int32Array.from(list));
  }

  /** Draw before the next frame; many calls make one drawing. */
  later() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.draw();
    });
  }

  variable(name) {
    return this.style.getPropertyValue(name).trim();
  }

  measure() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    this.width = width;
    this.left = 52;
    this.right = Math.max(this.left + 40, width - 8);
    const low = height - 40, room = low - 8;
    this.panels = {
      jobs: { top: 18, bottom: Math.round(room * 0.62) },
      used: { top: Math.round(room * 0.62) + 30, bottom: Math.round(room * 0.8) },
      queue: { top: Math.round(room * 0.8) + 30, bottom: low },
    };
    this.style = getComputedStyle(document.documentElement);
    this.pen = this.canvas.getContext("2d");
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.pen.clearRect(0, 0, width, height);
    this.pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  }

  x(time) {
    return this.left + ((time - this.begin) / (this.end - this.begin)) * (this.right - this.left);
  }

  time(x) {
    return this.begin + ((x - this.left) / (this.right - this.left)) * (this.end - this.begin);
  }

  y(proc) {
    const { top, bottom } = this.panels.jobs;
    return bottom - (proc / this.data.height) * (bottom - top);
  }

  draw() {
    this.measure();
    const ticks = this.timeline.ticks(this.begin, this.end, Math.max(2, Math.floor((this.right - this.left) / 78)));
    this.drawFrame(ticks);
    this.drawJobs();
    this.drawSeries("used", this.jobs.used, "--s2", this.data.procs, "Processors in use");
    this.drawSeries("queue", this.jobs.waiting, "--s3", 0, "Jobs waiting");
    this.drawAxis(ticks);
    this.drawMarked();
    this.tell();
  }

  /** Record in the element what is shown, for scripts and tests. */
  tell() {
    const { top, bottom } = this.panels.jobs;
    Object.assign(this.canvas.dataset, {
      policy: this.jobs.name, colour: this.by, begin: this.begin, end: this.end, job: this.job < 0 ? "" : this.jobs.job_id[this.job],
      left: this.left, right: this.right, top, bottom, height: this.data.height,
    });
  }

  drawFrame(ticks) {
    const pen = this.pen;
    pen.strokeStyle = this.variable("--rule");
    pen.lineWidth = 1;
    pen.beginPath();
    for (const [time] of ticks) {
      const x = Math.round(this.x(time)) + 0.5;
      for (const { top, bottom } of Object.values(this.panels)) {
        pen.moveTo(x, top);
        pen.lineTo(x, bottom);
      }
    }
    pen.stroke();
    const { top, bottom } = this.panels.jobs;
    this.write(`${this.jobs.name}: ${this.jobs.count.toLocaleString("en")} jobs on processors`, this.left, top - 6, "left");
    const step = niceStep(this.data.height / Math.max(2, Math.floor((bottom - top) / 44)), 1);
    for (let proc = 0; proc <= this.data.height; proc += step) {
      this.write(proc.toLocaleString("en"), this.left - 6, this.y(proc) + 4, "right");
    }
    this.line(this.left, bottom + 0.5, this.right, bottom + 0.5, "--faint");
    if (this.data.height > this.data.procs) this.line(this.left, this.y(this.data.procs), this.right, this.y(this.data.procs), "--ink");
  }

  write(text, x, y, align, variable = "--faint") {
    this.pen.fillStyle = this.variable(variable);
    this.pen.textAlign = align;
    this.pen.fillText(text, x, y, Math.max(this.width - 16, 40));
  }

  line(x, y, toX, toY, variable) {
    this.pen.strokeStyle = this.variable(variable);
    this.pen.beginPath();
    this.pen.moveTo(x, y);
    this.pen.lineTo(toX, toY);
    this.pen.stroke();
  }

  clip({ top, bottom }) {
    this.pen.save();
    this.pen.beginPath();
    this.pen.rect(this.left, top, this.right - this.left, bottom - top);
    this.pen.clip();
  }

  drawJobs() {
    const { pen, jobs, begin, end } = this;
    const { piece_begin: begins, piece_end: ends, piece_low: low, piece_high: high } = jobs;
    const scale = (this.right - this.left) / (end - begin);
    const { top, bottom } = this.panels.jobs;
    const tall = (bottom - top) / this.data.height;
    const seen = [];
    this.clip(this.panels.jobs);
    this.pieces.forEach((list, code) => {
      pen.fillStyle = this.variable(this.colours.groups[code].variable);
      for (const piece of list) {
        if (begins[piece] > end || ends[piece] < begin) continue;
        const from = Math.max(begins[piece], begin), width = (Math.min(ends[piece], end) - from) * scale;
        const height = (high[piece] - low[piece]) * tall;
        const gap = width > 4 && height > 4 ? 1 : 0;
        pen.fillRect(this.left + (from - begin) * scale, bottom - high[piece] * tall, width - gap, height - gap);
        if (gap && width > 30 && height > 13 && seen.length <= LABELLED) seen.push([piece, from, width, height, code]);
      }
    });
    if (seen.length <= LABELLED) this.label(seen, scale, bottom, tall);
    pen.restore();
  }

  label(seen, scale, bottom, tall) {
    const { pen, jobs } = this;
    pen.textAlign = "left";
    for (const [piece, from, width, height, code] of seen) {
      const text = String(jobs.job_id[jobs.piece_job[piece]]);
      if (pen.measureText(text).width > width - 6) continue;
      pen.fillStyle = isDark(this.variable(this.colours.groups[code].variable)) ? "#fff" : "#000";
      pen.fillText(text, this.left + (from - this.begin) * scale + 3, bottom - jobs.piece_high[piece] * tall + Math.min(height, 24) / 2 + 4);
    }
  }

  drawSeries(name, steps, variable, least, title) {
    const { pen } = this, panel = this.panels[name];
    const most = Math.max(least, steps.most(this.begin, this.end), 1);
    const y = (value) => panel.bottom - (value / most) * (panel.bottom - panel.top);
    this.clip({ top: panel.top - 1, bottom: panel.bottom });
    pen.fillStyle = this.variable(variable);
    pen.beginPath();
    pen.moveTo(this.left, panel.bottom);
    const visible = steps.place(this.end) - steps.place(this.begin);
    if (visible < this.right - this.left) {
      this.trace(steps, y);
    } else {
      for (let x = this.left; x < this.right; x++) {
        const value = y(steps.mean(this.time(x), this.time(x + 1)));
        pen.lineTo(x, value);
        pen.lineTo(x + 1, value);
      }
    }
    pen.lineTo(this.right, panel.bottom);
    pen.fill();
    pen.restore();
    this.line(this.left, panel.bottom + 0.5, this.right, panel.bottom + 0.5, "--faint");
    this.write(title, this.left, panel.top - 6, "left");
    this.write("0", this.left - 6, panel.bottom + 1, "right");
    this.write(Math.round(most).toLocaleString("en"), this.left - 6, panel.top + 8, "right");
  }

  /** Draw few steps exactly. */
  trace(steps, y) {
    let value = steps.value(this.begin);
    this.pen.lineTo(this.left, y(value));
    for (let at = steps.place(this.begin) + 1; at < steps.at.length && steps.at[at] <= this.end; at++) {
      const x = this.x(steps.at[at]);
      this.pen.lineTo(x, y(value));
      value = steps.values[at];
      this.pen.lineTo(x, y(value));
    }
    this.pen.lineTo(this.right, y(value));
  }

  drawAxis(ticks) {
    const low = this.panels.queue.bottom;
    let until = -Infinity;
    for (const [time, text] of ticks) {
      const x = this.x(time), half = this.pen.measureText(text).width / 2;
      if (x - half < until || x + half > this.width) continue;
      this.write(text, x, low + 16, "center");
      until = x + half + 8;
    }
    const from = this.timeline.text(this.begin), to = this.timeline.text(this.end);
    this.write(from, this.left, low + 34, "left", "--ink");
    this.write(to, this.right, low + 34, "right", "--ink");
  }

  /** Mark the chosen job: its outline, the line of its wait, and its promised start. */
  drawMarked() {
    const { pen, jobs, job } = this;
    if (job < 0) return;
    this.clip(this.panels.jobs);
    pen.strokeStyle = this.variable("--ink");
    pen.lineWidth = 2;
    let middle = this.y(0);
    for (let piece = 0; piece < jobs.piece_job.length; piece++) {
      if (jobs.piece_job[piece] !== job) continue;
      const from = this.x(jobs.piece_begin[piece]), to = Math.max(this.x(jobs.piece_end[piece]), from + 1);
      const top = this.y(jobs.piece_high[piece]), height = Math.max(this.y(jobs.piece_low[piece]) - top, 1);
      pen.strokeRect(from, top, to - from, height);
      if (jobs.piece_begin[piece] === jobs.start[job]) middle = top + height / 2;
    }
    pen.lineWidth = 1;
    pen.setLineDash([4, 3]);
    this.line(this.x(jobs.submit[job]), middle, this.x(jobs.start[job]), middle, "--ink");
    pen.setLineDash([]);
    const promised = jobs.first_promise[job] >= 0 ? jobs.first_promise[job] : jobs.promise[job];
    if (promised >= 0) this.line(this.x(promised), middle - 7, this.x(promised), middle + 7, "--ink");
    pen.restore();
  }

  /** The job under a point of the canvas; if jobs are too small to hit, the nearest within three pixels. */
  hit(x, y) {
    const { top, bottom } = this.panels.jobs;
    if (x < this.left || x > this.right || y < top || y > bottom) return -1;
    const { jobs } = this, time = this.time(x);
    const proc = ((bottom - y) / (bottom - top)) * this.data.height;
    const near = (3 / (this.right - this.left)) * (this.end - this.begin);
    let best = -1, nearest = near;
    for (let piece = 0; piece < jobs.piece_job.length; piece++) {
      if (proc < jobs.piece_low[piece] || proc >= jobs.piece_high[piece]) continue;
      const job = jobs.piece_job[piece];
      const away = Math.max(jobs.piece_begin[piece] - time, time - jobs.piece_end[piece], 0);
      if (away === 0 && time < jobs.piece_end[piece]) return job;
      if (away < nearest) [best, nearest] = [job, away];
    }
    return best;
  }
}

/** The least of 1, 2, 5, 10, 20, 50, ... that is no smaller. */
function niceStep(size, least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(size, least)));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= size) || power;
}

function isDark(colour) {
  const number = parseInt(colour.slice(1), 16);
  return 0.299 * (number >> 16) + 0.587 * ((number >> 8) & 255) + 0.114 * (number & 255) < 140;
}
