// Places bars of one node one above the other, each as high as its GPUs.

/** For each bar its first lane, its lanes, and the lanes of its node. `capacity(node)` is the node's GPUs, 0 if unknown. */
export function lanes(bars, capacity) {
  const nodes = new Map();
  bars.forEach((bar, at) => {
    if (!nodes.has(bar.node)) nodes.set(bar.node, []);
    nodes.get(bar.node).push(at);
  });
  const places = new Array(bars.length);
  for (const [node, own] of nodes) {
    own.sort((a, b) => bars[a].start_s - bars[b].start_s || bars[b].gpus - bars[a].gpus);
    const all = Math.max(1, capacity(node), ...own.map((at) => bars[at].gpus));
    const ends = new Array(all).fill(-Infinity);
    for (const at of own) {
      const { gpus, start_s, end_s } = bars[at];
      const many = Math.max(1, gpus);
      let first = 0;
      const free = (lane) => ends.slice(lane, lane + many).every((end) => end <= start_s);
      while (first + many <= all && !free(first)) first += 1;
      if (first + many > all) first = earliest(ends, many);
      ends.fill(end_s ?? Infinity, first, first + many);
      places[at] = [first, many, all];
    }
  }
  return places;
}

/** Where no lanes are free, because jobs share GPUs: those that were free the longest ago. */
function earliest(ends, many) {
  let best = 0;
  let least = Infinity;
  for (let lane = 0; lane + many <= ends.length; lane += 1) {
    const latest = Math.max(...ends.slice(lane, lane + many));
    if (latest < least) [best, least] = [lane, latest];
  }
  return best;
}
