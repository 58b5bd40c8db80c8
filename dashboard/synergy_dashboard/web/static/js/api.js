// Requests to the API of the server that the page came from, with the user's token.

const KEY = "token";

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/** Take `#token=...` out of the address bar and the history. */
export function takeToken() {
  const found = /^#token=([^&]*)(?:&(.*))?$/.exec(location.hash);
  if (!found) return;
  token.set(decodeURIComponent(found[1]));
  history.replaceState(null, "", `${location.pathname}${location.search}${found[2] ? `#${found[2]}` : ""}`);
}

export function request(path, options = {}) {
  const headers = { ...options.headers };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  return fetch(new URL(`api/v1/${path}`, document.baseURI), { cache: "no-store", ...options, headers });
}

async function failed(answer) {
  const told = await answer.json().then((body) => body.error ?? body.detail, () => "");
  return new ApiError(answer.status, typeof told === "string" ? told : JSON.stringify(told));
}

async function answered(path, options) {
  let answer;
  try {
    answer = await request(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "the server does not answer");
  }
  if (!answer.ok) throw await failed(answer);
  return answer;
}

export const get = async (path, signal) => (await answered(path, { signal })).json();

export async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return (await answered(path, { method: "POST", headers, body: JSON.stringify(body), signal })).json();
}

/** Save an answer as a file. */
export async function download(path, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await (await answered(path)).blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
