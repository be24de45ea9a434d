// Where the bytes of a replay come from: the page itself, or the server that served it.

// Connects to the server that served the page; calls bytes(Uint8Array), said(object) and ended(text).
export function connect({ bytes, said, ended }) {
  const address = new URL("stream", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  address.search = location.search;
  let opened = false;
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => (opened = true);
  socket.onmessage = ({ data }) => (typeof data === "string" ? said(JSON.parse(data)) : bytes(new Uint8Array(data)));
  socket.onclose = ({ reason }) => ended(reason || (opened ? "The server has stopped." : "There is no answer from the server."));
  return socket;
}

// Calls add(bytes) for what comes, live(settings) with whether it is played right now, wait(text) with what the server
// does meanwhile, and fail(text) if nothing more can come.
export function openSource({ add, live, wait, fail }) {
  const inside = document.getElementById("replay");
  if (!inside) return void connect({ bytes: add, said: (it) => ("waiting" in it ? wait(it.waiting) : live(it)), ended: fail });
  const text = atob(inside.textContent.trim());
  add(Uint8Array.from(text, (letter) => letter.charCodeAt(0)));
}
