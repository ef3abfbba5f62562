// The reader's actions: choose, zoom, move, point at a job, go from job to job, find one.

const SHORTEST = 30;  // least number of seconds that the chart shows
const SLACK = 4;  // pixels that a finger may move before a drag begins

class Controls {
  constructor(data) {
    this.data = data;
    this.part = (name) => document.getElementById(`gantt-${name}`);
    this.canvas = this.part("canvas");
    this.tip = this.part("tip");
    this.pointers = new Map();
    this.drawing = new Drawing(this.canvas, data);
    this.part("colour").value = data.colour;
    data.jobs.forEach((jobs, at) => this.part("policy").add(new Option(jobs.name, at)));
    this.listen();
    this.legend();
    this.drawing.draw();
  }

  listen() {
    const { canvas } = this;
    this.part("controls").addEventListener("submit", (event) => { event.preventDefault(); this.find(); });
    for (const name of ["policy", "colour"]) this.part(name).addEventListener("change", () => this.choose());
    document.querySelectorAll("[data-do]").forEach((button) => button.addEventListener("click", () => this.act(button.dataset.do)));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => { if (!this.pointers.size) this.hide(); });
    canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.drawing.time(event.offsetX)));
    new ResizeObserver(() => this.drawing.later()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawing.later());
  }

  choose() {
    const id = this.drawing.job < 0 ? null : this.drawing.jobs.job_id[this.drawing.job];
    this.drawing.choose(Number(this.part("policy").value), this.part("colour").value);
    this.drawing.job = id === null ? -1 : this.drawing.jobs.job_id.indexOf(id);
    this.tip.hidden = true;
    this.legend();
    this.drawing.later();
    this.tell();
  }

  legend() {
    const list = this.part("legend");
    list.replaceChildren(...this.drawing.colours.groups.filter((group) => group.jobs).map((group) => {
      const item = document.createElement("li"), swatch = document.createElement("i");
      swatch.className = "swatch";
      swatch.style.background = `var(${group.variable})`;
      item.append(swatch, `${group.words} (${group.jobs.toLocaleString("en")})`);
      return item;
    }));
  }

  // ---- zooming and moving

  act(what) {
    const { begin, end } = this.drawing, middle = (begin + end) / 2, step = (end - begin) / 4;
    if (what === "in") this.zoom(0.5, middle);
    else if (what === "out") this.zoom(2, middle);
    else if (what === "left") this.show(begin - step, end - step);
    else if (what === "right") this.show(begin + step, end + step);
    else this.show(0, this.data.last);
    this.tell();
  }

  zoom(factor, around) {
    const { begin, end } = this.drawing;
    this.show(around - (around - begin) * factor, around + (end - around) * factor);
  }

  /** Show from one instant to another, kept within the run and long enough to read. */
  show(begin, end) {
    const { last } = this.data;
    const span = Math.min(Math.max(end - begin, Math.min(SHORTEST, last)), last);
    const middle = (begin + end) / 2;
    const from = Math.min(Math.max(middle - span / 2, 0), last - span);
    this.drawing.begin = from;
    this.drawing.end = from + span;
    this.drawing.later();
  }

  wheel(event) {
    const isPinch = event.ctrlKey || event.metaKey;
    if (!isPinch && document.activeElement !== this.canvas) return;  // the page scrolls
    event.preventDefault();
    const { begin, end, left, right } = this.drawing;
    if (!isPinch && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = (event.deltaX / (right - left)) * (end - begin);
      this.show(begin + by, end + by);
    } else {
      this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * (isPinch ? 0.01 : 0.002)))), this.drawing.time(event.offsetX));
    }
    this.hide();
    this.tell();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", Home: "whole", 0: "whole" };
    if (event.key in acts) this.act(acts[event.key]);
    else if (event.key === "ArrowDown") this.step(1);
    else if (event.key === "ArrowUp") this.step(-1);
    else if (event.key === "Escape") this.hide();
    else return;
    event.preventDefault();
  }

  // ---- pointers: one drags, two pinch, a mouse without a button points

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, isDragging: event.pointerType === "mouse" });
    if (event.pointerType !== "mouse") this.point(event);
  }

  move(event) {
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      this.point(event);
      return;
    }
    const now = event.offsetX, by = pointer.x - now;
    if (!by || (!pointer.isDragging && this.pointers.size === 1 && Math.abs(by) < SLACK)) return;
    const { begin, end, left, right } = this.drawing;
    if (this.pointers.size === 1) {
      const time = (by / (right - left)) * (end - begin);
      this.show(begin + time, end + time);
    } else {
      const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, one]) => one.x);
      const apart = (x) => Math.max(Math.abs(x - other), 10);
      this.zoom(apart(pointer.x) / apart(now), this.drawing.time((now + other) / 2));
    }
    Object.assign(pointer, { x: now, isDragging: true });
    this.tip.hidden = true;
    this.tell();
  }

  // ---- jobs

  point(event) {
    const job = this.drawing.hit(event.offsetX, event.offsetY);
    if (job < 0) this.hide();
    else this.mark(job, event.offsetX, event.offsetY);
  }

  hide() {
    this.tip.hidden = true;
    if (this.drawing.job >= 0) {
      this.drawing.job = -1;
      this.drawing.later();
    }
  }

  mark(job, x, y) {
    this.drawing.job = job;
    this.drawing.later();
    const lines = this.lines(job), title = document.createElement("b"), list = document.createElement("dl");
    title.textContent = `Job ${this.drawing.jobs.job_id[job]}`;
    for (const [name, text] of lines) {
      const term = document.createElement("dt"), told = document.createElement("dd");
      term.textContent = name;
      told.textContent = text;
      list.append(term, told);
    }
    this.tip.replaceChildren(title, list);
    this.tip.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const room = this.canvas.clientWidth;
    this.tip.style.left = `${Math.max(0, x + 14 + width > room ? x - width - 14 : x + 14)}px`;
    this.tip.style.top = `${Math.max(0, y + 14 + height > this.canvas.clientHeight ? y - height - 8 : y + 14)}px`;
  }

  lines(job) {
    const { jobs, timeline } = this.drawing, lines = [];
    const kind = this.data.kinds[jobs.kind[job]];
    if (jobs.user[job] >= 0) lines.push(["user", String(jobs.user[job])]);
    if (jobs.queue[job] >= 0) lines.push(["queue", String(jobs.queue[job])]);
    lines.push(["processors", jobs.procs[job].toLocaleString("en")]);
    lines.push(["submitted", timeline.text(jobs.submit[job])]);
    const pieces = jobs.piece_count ? jobs.piece_count[job] : 0;
    lines.push([pieces > 0 ? "waited in all" : "waited", durationText(waited(jobs, job))]);
    lines.push(["started", `${timeline.text(jobs.start[job])}${kind ? `, ${kind}` : ""}`]);
    lines.push(["ran", `${durationText(jobs.run[job])} of ${durationText(jobs.estimate[job])} requested`]);
    if (pieces > 0) lines.push(["intervals", `${pieces}, until ${timeline.text(jobs.end[job])}`]);
    lines.push(["slowdown", `${Number(boundedSlowdown(jobs, job).toPrecision(4))} (bounded)`]);
    const { promise, first_promise: first } = jobs;
    if (promise[job] >= 0) {
      const told = first[job] >= 0 ? first[job] : promise[job];
      lines.push(["promised", `${timeline.text(told)}${promise[job] < told ? `, then ${timeline.text(promise[job])}` : ""}`]);
    }
    return lines;
  }

  /** Go to the next or the previous job in order of start, from the first in view if none is chosen. */
  step(by) {
    const { drawing } = this, { jobs } = drawing;
    let rank = drawing.job < 0 ? -1 : jobs.rank[drawing.job] + by;
    if (rank < 0 && drawing.job < 0) rank = Math.max(jobs.order.findIndex((job) => jobs.start[job] >= drawing.begin), 0);
    this.go(jobs.order[Math.min(Math.max(rank, 0), jobs.count - 1)]);
  }

  /** Choose a job, bring it into view, and announce it. */
  go(job) {
    const { drawing } = this, { jobs } = drawing;
    if (jobs.start[job] < drawing.begin || jobs.start[job] > drawing.end) {
      const span = drawing.end - drawing.begin;
      this.show(jobs.start[job] - span / 2, jobs.start[job] + span / 2);
    }
    clearTimeout(this.telling);
    drawing.job = job;
    drawing.draw();
    const piece = jobs.firstPiece[job];
    this.mark(job, drawing.x(jobs.start[job]), drawing.y(piece < 0 ? 0 : jobs.piece_high[piece]));
    this.say(`Job ${jobs.job_id[job]}: ${this.lines(job).map(([name, text]) => `${name} ${text}`).join("; ")}.`);
  }

  find() {
    const { drawing } = this, text = this.part("find").value.trim();
    const job = /^\d+$/.test(text) ? drawing.jobs.job_id.indexOf(Number(text)) : -1;
    if (job < 0) {
      this.say(text ? `There is no job ${text} here.` : "Give a job's number.");
      return;
    }
    const { start, end } = drawing.jobs, room = Math.max((end[job] - start[job]) * 6, 3600);
    const middle = (start[job] + end[job]) / 2;
    this.show(middle - room, middle + room);
    this.go(job);
  }

  /** Announce, a moment after the last change, what is shown. */
  tell() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      const { begin, end, jobs, timeline } = this.drawing;
      let count = 0;
      for (let job = 0; job < jobs.count; job++) count += jobs.start[job] <= end && jobs.end[job] >= begin;
      this.say(`Shown: ${jobs.name}, ${timeline.text(begin)} to ${timeline.text(end)}, ${count.toLocaleString("en")} jobs.`);
    }, 300);
  }

  say(text) {
    this.part("status").textContent = text;
  }
}

(async () => {
  const failed = document.getElementById("gantt-failed");
  try {
    const data = await readData();
    document.getElementById("gantt").hidden = false;
    document.documentElement.classList.add("has-script");
    new Controls(data);
    if (data.cut) {
      failed.textContent = "This run is long: the chart shows only its first jobs; the tables count all.";
      failed.hidden = false;
    }
  } catch (error) {
    document.documentElement.classList.remove("has-script");
    document.getElementById("gantt").hidden = true;
    failed.textContent = `The zoomable chart needs a newer browser (${error.message}). The picture shows the whole.`;
    failed.hidden = false;
  }
})();
