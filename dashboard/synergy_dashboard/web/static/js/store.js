// What the page knows of the cluster: loaded once, then kept up to date by changes.

import { get } from "./api.js";
import { jobColors, tenantColors } from "./colors.js";
import { follow } from "./live.js";

const full = (row) => `${row.namespace}/${row.job}`;

class Store extends EventTarget {
  me = null;
  cluster = null;
  queue = null;
  error = null;
  live = { state: "connecting", retry_s: 0 };
  jobs = new Map();
  nodes = new Map();
  waiting = new Map();
  forecasts = {};
  #kept = [];
  #loads = 0;
  #stop = null;
  #drift = 0;
  #tried = 0;

  /** The server's time now, in seconds since the epoch. */
  now() {
    return Date.now() / 1000 + this.#drift;
  }

  get waitingCount() {
    return Object.values(this.cluster.waiting_by_reason).reduce((sum, one) => sum + one, 0);
  }

  /** Seconds that a job has waited until now. */
  waited(row) {
    return row.waiting_s + Math.max(0, this.now() - row.seen_s);
  }

  start() {
    this.stop();
    let open;
    const opened = new Promise((resolve) => (open = resolve));
    const first = Promise.race([opened, new Promise((resolve) => setTimeout(resolve, 150))]).then(() => this.load());
    let begun = false;
    const begin = () => (begun = true);
    first.then(begin, begin);
    this.#stop = follow({
      onState: (state, retry_s = 0) => {
        this.live = { state, retry_s };
        this.#tell("live");
      },
      onOpen: () => {
        open();
        if (begun) this.load().catch(() => {});
      },
      onChange: (change) => this.#take(change),
    });
    return first;
  }

  stop() {
    this.#stop?.();
    this.#stop = null;
  }

  /** Everything anew. Changes that come meanwhile are applied after it. */
  async load() {
    this.#loads += 1;
    const queue = get("queue").catch((error) => error);
    try {
      this.#setCluster(await get("cluster"));
      this.error = null;
      this.#tell("loaded");
      const answer = await queue;
      if (answer instanceof Error) throw answer;
      this.#setQueue(answer);
    } catch (error) {
      this.error = error;
      this.#tell("error");
      throw error;
    } finally {
      this.#loads -= 1;
    }
    if (this.#loads === 0) for (const change of this.#kept.splice(0)) this.#apply(change);
    this.#tell("loaded");
  }

  /** Load again what changes do not carry, where it is older than `seconds`: forecasts, the use of the last day. */
  async refresh(part, seconds) {
    const page = this[part];
    const old = page && this.now() - Math.max(page.now, this.#tried) >= seconds;
    if (!old || this.#loads > 0 || this.live.state !== "live") return;
    this.#tried = this.now();
    await this.load().catch(() => {});
  }

  #setCluster(cluster) {
    this.#drift = cluster.now - Date.now() / 1000;
    this.cluster = cluster;
    this.jobs = new Map(cluster.jobs.map((row) => [row.job, row]));
    this.nodes = new Map(cluster.nodes.map((row) => [row.node, row]));
    jobColors.know(this.jobs.keys());
    tenantColors.know(cluster.tenants.map((row) => row.tenant));
  }

  #setQueue(queue) {
    this.queue = queue;
    this.forecasts = queue.forecasts;
    this.waiting = new Map(queue.rows.map((row) => [full(row), Object.assign(row, { seen_s: queue.now })]));
  }

  #take(change) {
    if (!performance.getEntriesByName("change", "mark").length) performance.mark("change");
    if (this.#loads > 0 || !this.queue) this.#kept.push(change);
    else {
      this.#apply(change);
      this.#tell("change", change);
    }
  }

  #apply(change) {
    if (change.now < this.cluster.now) return;
    this.#drift = change.now - Date.now() / 1000;
    merge(this.jobs, change.jobs);
    merge(this.nodes, change.nodes);
    for (const row of Object.values(change.queue)) if (row) row.seen_s = change.now;
    merge(this.waiting, change.queue);
    for (const part of ["types", "tenants", "waiting_by_reason", "policy"]) if (change[part]) this.cluster[part] = change[part];
    if (change.round_ends_s && this.cluster.policy) this.cluster.policy.round_ends_s = change.round_ends_s;
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

function merge(rows, changed) {
  for (const [name, row] of Object.entries(changed)) {
    if (row === null) rows.delete(name);
    else rows.set(name, row);
  }
}

export const store = new Store();
