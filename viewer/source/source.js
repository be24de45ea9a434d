// Where the bytes of a replay come from: the page itself, or the server that served it.

// Calls add(bytes) for what comes, live(settings) with whether it is played right now, wait(text) with what the server
// does meanwhile, and fail(text) if nothing more can come.
export function openSource({ add, live, wait, fail }) {
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
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return add(new Uint8Array(data));
    const said = JSON.parse(data);
    return "waiting" in said ? wait(said.waiting) : live(said);
  };
  socket.onclose = ({ reason }) => fail(reason || (opened ? "The server has stopped." : "There is no answer from the server."));
}
