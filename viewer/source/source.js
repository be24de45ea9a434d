// Where the bytes of a replay come from: the page itself, or the server that served it.


// Calls add(bytes) for what comes, live(settings) if it is played right now, and fail(text) if nothing more can come.
export function openSource({ add, live, fail }) {
  const inside = document.getElementById("replay");
  if (inside) {
    const text = atob(inside.textContent.trim());
    return void add(Uint8Array.from(text, (letter) => letter.charCodeAt(0)));
  }
  const address = new URL("stream", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  address.search = location.search;
  let opened = false;
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => (opened = true);
  socket.onmessage = ({ data }) => (typeof data === "string" ? live(JSON.parse(data)) : add(new Uint8Array(data)));
  socket.onclose = ({ reason }) => fail(reason || (opened ? "The server has stopped." : "There is no answer from the server."));
}

