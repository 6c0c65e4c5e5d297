// The points of one job, kept up to date: all at first, then only what is new. A step comes once, and never too late.
const MOST_POINTS = 750; // the lowest and the highest of every two or three pixels of a chart stay
const LONG = 10_000; // a page that is open for days reads a curve anew, which thins it out
const DIGITS = 6; // more than a chart shows, in its lines and in its words

export class Run {
  // `label` is the name where it stands among others; it tells runs of one name apart.
  constructor(api, { id, name, label = name }) {
    this.api = api;
    this.id = id;
    this.name = name;
    this.label = label;
    this.curves = new Map();
    this.scalars = {};
    this.attempt = -1;
    this.stepsPerEpoch = 0;
    this.isActive = true;
    this.isGone = false; // deleted meanwhile: what is drawn of it stays
  }

  // The time of the first point of all curves.
  get start() {
    return Math.min(...[...this.curves.values()].map((each) => each.times[0] ?? Infinity));
  }

  // Returns whether anything is different; not of a job that was deleted, which is not asked for again.
  async update({ isWhole = false } = {}) {
    const job = this.isGone ? null : await this.#ask("");
    if (!job) {
      this.isGone = true;
      this.isActive = false;
      return false;
    }
    // A job that goes on from a checkpoint does steps again: what was drawn of them holds no longer.
    const isAnew = isWhole || job.attempt !== this.attempt || this.#isLong();
    const wanted = Object.values(job.scalars).filter((each) => isAnew || each.last_step > this.#last(each.tag));
    const found = wanted.length ? await this.#ask(`/curves?${this.#query(wanted, isAnew)}`) : [];
    if (isAnew) this.curves = new Map();
    for (const curve of found) this.#add(curve);
    const isOther = isAnew || found.length > 0 || this.isActive !== isActive(job);
    this.attempt = job.attempt;
    this.name = job.name;
    this.scalars = job.scalars;
    this.isActive = isActive(job);
    this.stepsPerEpoch = job.max_epoch > 0 ? job.total_steps / job.max_epoch : 0;
    return isOther;
  }

  #isLong() {
    return [...this.curves.values()].some((curve) => curve.steps.length > LONG);
  }

  #query(wanted, isAnew) {
    const query = new URLSearchParams({ max_points: MOST_POINTS, digits: DIGITS });
    if (!isAnew) query.set("since_step", Math.min(...wanted.map((each) => this.#last(each.tag))));
    for (const each of wanted) query.append("tag", each.tag);
    return query;
  }

  #last(tag) {
    return this.curves.get(tag)?.steps.at(-1) ?? -1;
  }

  #add(curve) {
    const known = this.curves.get(curve.tag) ?? { steps: [], values: [], times: [] };
    const last = known.steps.at(-1) ?? -1;
    curve.steps.forEach((step, index) => {
      if (step <= last) return;
      known.steps.push(step);
      known.values.push(Number(curve.values[index])); // the texts NaN and Infinity become what they say
      known.times.push(curve.times[index]);
    });
    this.curves.set(curve.tag, known);
  }

  async #ask(path) {
    const answer = await fetch(`${this.api}/${this.id}${path}`, { headers: { Accept: "application/json" } });
    if (answer.status === 404 && path === "") return null;
    if (!answer.ok) throw new Error(`${answer.status} of ${path}`);
    return answer.json();
  }
}

function isActive(job) {
  return !["done", "failed", "stopped"].includes(job.state);
}
