// Addresses such as #/queue?reason=WaitingForRoom&page=2: the page, its path and its filters.

export function read() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [page, ...rest] = path.split("/").map(decodeURIComponent);
  return { page: page || "cluster", rest, filters: Object.fromEntries(new URLSearchParams(query)) };
}

const withFilters = (route, filters) => {
  const kept = Object.entries(filters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(kept).toString();
  return `#/${[route.page, ...route.rest].map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
};

/** Change filters of the page that is shown; empty ones leave the address. Typing replaces, choosing adds to the history. */
export function setFilters(changed, { typing = false } = {}) {
  const route = read();
  const address = withFilters(route, { ...route.filters, ...changed });
  if (address === location.hash) return;
  history[typing ? "replaceState" : "pushState"](null, "", address);
  dispatchEvent(new Event("filters"));
}
