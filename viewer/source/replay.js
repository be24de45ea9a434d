// The replay format of envs/replays, read piece by piece: a file, a page that holds one, or a game that is being played.

const MAGIC = "FRLREP";
const VERSION = 1;
const HEAD = 13;
const MOST_BYTES = { H: 1 << 22, B: 1 << 16, C: 1 << 24, V: 1 << 20, E: 1 << 16 };
const MOST = { games: 10_000, events: 100_000, columns: 64, frameBytes: 1 << 15, numbers: 1 << 28 };
const DAMAGED = "This replay is damaged.";
const BYTES = { "|u1": 1, "|i1": 1, "<i2": 2, "<u2": 2, "<i4": 4, "<f2": 2 };

const CRC = new Uint32Array(256).map((_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

function crc32(bytes) {
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = CRC[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

function limit(count, most) {
  if (count > most) throw new Error("This replay is too large.");
}

// Refuses a header of which a page would take all memory, or never get done.
function checkHeader({ teams, pads, rewards, ticks_per_second: rate }, columns) {
  const count = (name) => columns.find((column) => column.name === name)?.count ?? 0;
  const bytes = columns.reduce((sum, column) => sum + column.count * BYTES[column.dtype], 0);
  const fits = count("car_pos") === 3 * teams.length && count("pad_timers") === pads.length && count("rewards") === teams.length * rewards.length;
  const small = columns.length <= MOST.columns && bytes <= MOST.frameBytes && columns.every((column) => column.differences <= 2);
  if (!(fits && small && rate > 0)) throw new Error(DAMAGED);
}

async function inflate(bytes, size) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  const out = new Uint8Array(size);
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (at + value.length > size) throw new Error(DAMAGED);
    out.set(value, at);
    at += value.length;
  }
  if (at !== size) throw new Error(DAMAGED);
  return out;
}

function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -24 * fraction;
}

// One column of a chunk: byte planes of [numbers, frames], differenced in time -> Float32Array [frames, numbers].
function unpackColumn(column, data, frames) {
  const width = BYTES[column.dtype];
  const shift = 32 - 8 * width;
  const signed = column.dtype[1] === "i";
  const out = new Float32Array(frames * column.count);
  const plane = frames * column.count;
  const whole = new Int32Array(frames);
  for (let k = 0; k < column.count; k++) {
    for (let t = 0; t < frames; t++) {
      let value = 0;
      for (let b = 0; b < width; b++) value |= data[b * plane + k * frames + t] << (8 * b);
      whole[t] = value;
    }
    for (let d = 0; d < column.differences; d++) for (let t = 1; t < frames; t++) whole[t] += whole[t - 1];
    for (let t = 0; t < frames; t++) {
      const bits = whole[t] << shift;
      const value = signed ? bits >> shift : bits >>> shift;
      out[t * column.count + k] = column.dtype === "<f2" ? half(value) : value * column.scale;
    }
  }
  return out;
}

export class Game {
  constructor(replay, about) {
    this.replay = replay;
    this.about = about;
    this.named = replay.about.title;
    this.title = this.named ?? `game ${replay.games.length + 1}`;
    this.events = [];
    this.result = null;
    this.frames = 0;
    this.seconds = new Float32Array(0);
    this.columns = {};
    this.capacity = 0;
    this.waiting = [];
  }

  // Unpacks the chunks that have come since the last call.
  async load() {
    while (this.waiting.length) {
      const chunk = this.waiting.shift();
      const frames = new DataView(chunk.buffer, chunk.byteOffset).getUint32(0, true);
      const columns = this.replay.columns;
      const size = frames * columns.reduce((sum, column) => sum + column.count * BYTES[column.dtype], 0);
      if (!(size > 0 && size <= 1 << 24)) throw new Error(DAMAGED);
      limit((this.replay.numbers += frames * columns.reduce((sum, column) => sum + column.count, 0)), MOST.numbers);
      const data = await inflate(chunk.subarray(4), size);
      this.reserve(this.frames + frames);
      let at = 0;
      for (const column of columns) {
        const bytes = frames * column.count * BYTES[column.dtype];
        const values = unpackColumn(column, data.subarray(at, at + bytes), frames);
        this.columns[column.name].set(values, this.frames * column.count);
        at += bytes;
      }
      const { ticks, begins } = this.columns;
      for (let t = this.frames; t < this.frames + frames; t++) {
        const late = t && begins[t] ? 0.5 : 0; // a kickoff has the tick of the end before it, and both are to be seen
        this.seconds[t] = (ticks[t] + late) / this.replay.about.ticks_per_second;
      }
      this.frames += frames;
      this.roll(this.frames - frames);
    }
  }

  // How the ball is turned in each frame: its spin, added up (w, x, y, z in the game's axes).
  roll(first) {
    const { spin, ball_ang_vel: speed, begins } = this.columns;
    for (let t = first; t < this.frames; t++) {
      if (!t || begins[t]) {
        spin.set([1, 0, 0, 0], 4 * t);
        continue;
      }
      const [x, y, z] = speed.subarray(3 * t, 3 * t + 3);
      const fast = Math.hypot(x, y, z) || 1e-9;
      const angle = (fast * (this.seconds[t] - this.seconds[t - 1])) / 2;
      const [a, s] = [Math.cos(angle), Math.sin(angle) / fast];
      const [b, c, d] = [x * s, y * s, z * s];
      const [e, f, g, h] = spin.subarray(4 * t - 4, 4 * t);
      const turned = [a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g, a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e];
      const length = Math.hypot(...turned);
      spin.set(turned.map((number) => number / length), 4 * t);
    }
  }

  reserve(frames) {
    if (frames <= this.capacity) return;
    this.capacity = Math.max(frames, 2 * this.capacity, 64);
    const grown = (old, count) => {
      const array = new Float32Array(this.capacity * count);
      array.set(old ?? []);
      return array;
    };
    this.seconds = grown(this.seconds, 1);
    this.columns.spin = grown(this.columns.spin, 4);
    for (const column of this.replay.columns) {
      this.columns[column.name] = grown(this.columns[column.name], column.count);
    }
  }

  get length() {
    return this.frames ? this.seconds[this.frames - 1] : 0;
  }

  // The last goal at or before a time.
  goalAt(seconds) {
    return this.events.findLast((event) => event.kind === "goal" && event.seconds <= seconds + 1e-3);
  }

  // The frame in which the episode of a frame ends.
  lastOf(frame) {
    while (frame + 1 < this.frames && !this.columns.begins[frame + 1]) frame++;
    return frame;
  }

  // The last frame at or before a time.
  frameAt(seconds) {
    let low = 0;
    let high = this.frames - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.seconds[middle] <= seconds) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

// Names and titles of a file show their invisible characters, such as marks that change the direction of text, as escapes.
const escaped = (_, value) =>
  typeof value === "string" ? value.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`) : value;

// What all games of a page have in common; the rest of a header is each game's own.
const layout = ({ title, seed, ...rest }) => JSON.stringify(rest);

// Games from one replay, or from several one behind the other.
export class Replay {
  constructor() {
    this.about = null;
    this.others = false; // whether a header has come that is not like those before
    this.columns = [];
    this.games = [];
    this.numbers = 0; // unpacked
    this.rest = new Uint8Array(0);
    this.started = false;
  }

  get ballRadius() {
    return this.about.ball_radius > 0 ? this.about.ball_radius : 91.25;
  }

  // Takes the next bytes; what is not a whole record yet waits for those that follow.
  add(bytes) {
    const data = new Uint8Array(this.rest.length + bytes.length);
    data.set(this.rest);
    data.set(bytes, this.rest.length);
    this.rest = new Uint8Array(0); // of what is damaged nothing waits
    const view = new DataView(data.buffer);
    let at = 0;
    while (data.length - at >= HEAD) {
      if (String.fromCharCode(...data.subarray(at, at + 6)) === MAGIC) {
        if (view.getUint16(at + 6, true) > VERSION) throw new Error("This replay needs a newer fabric-rl.");
        this.started = true;
        at += 8;
        continue;
      }
      if (!this.started) throw new Error("This is not a fabric-rl replay.");
      const kind = String.fromCharCode(data[at]);
      const length = view.getUint32(at + 1, true);
      const headFits = crc32(data.subarray(at, at + 9)) === view.getUint32(at + 9, true);
      if (!headFits || !(length <= MOST_BYTES[kind])) throw new Error(DAMAGED);
      if (data.length - at - HEAD < length) break;
      const payload = data.slice(at + HEAD, at + HEAD + length);
      if (crc32(payload) !== view.getUint32(at + 5, true)) throw new Error(DAMAGED);
      this.record(kind, payload);
      at += HEAD + length;
    }
    this.rest = data.slice(at);
  }

  record(kind, payload) {
    const game = this.games.at(-1);
    if (kind === "C") return game.waiting.push(payload);
    const content = JSON.parse(new TextDecoder().decode(payload), escaped);
    if (kind === "H") {
      this.others = Boolean(this.about) && layout(this.about) !== layout(content);
      if (this.others) this.games = [];
      this.about = content;
      this.columns = content.columns.map((c) => ({ ...c, count: c.shape.reduce((a, b) => a * b, 1) }));
      checkHeader(content, this.columns);
    } else if (kind === "B") limit(this.games.push(new Game(this, content)), MOST.games);
    else if (kind === "V") limit(game.events.push(...content.events), MOST.events);
    else {
      game.result = content;
      if (content.seconds < this.about.seconds - 0.1) game.title += `, its first ${Math.round(content.seconds)} s`;
    }
  }
}
