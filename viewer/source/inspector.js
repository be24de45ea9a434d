// What one car does, expects and is paid, as numbers and as charts around the present time.

import { clock } from "./timeline.js";

const BEFORE = 8;
const AFTER = 4;
const KMH = 0.036; // of one uu/s
const [BOTTOM, TICK] = [14, 4]; // pixels below a chart for its numbers; seconds
const SPIKE = 4; // times what 98 % of the numbers reach: what is higher, such as a goal, is cut off and marked with its number
const COLOURS = ["#4c9bff", "#ff9640", "#42c98b", "#e45fa5", "#b28bff", "#e2c044", "#47c5d6", "#f0695c", "#9fb17c", "#8796ab"];
const NAMES = ["throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "powerslide"];

const make = (tag, className, text = "") => Object.assign(document.createElement(tag), { className, textContent: text });

// An action in words: what differs from doing nothing; on wheels pitch and roll do nothing until the car jumps.
export function inWords(row, onWheels) {
  const words = [];
  const say = (value, less, more) => value && words.push(value < 0 ? less : more);
  say(row[0], "reverse", row[6] ? "" : "throttle");
  if (row[6]) words.push("boost");
  if (row[5]) words.push("jump");
  if (onWheels || (row[1] && row[1] === row[3])) say(row[1], "left", "right");
  else say(row[3], "left", "right");
  if (!onWheels || row[5]) {
    say(row[2], "nose down", "nose up");
    say(row[4], "roll left", "roll right");
  }
  if (row[7]) words.push("powerslide");
  return words.filter(Boolean).join(" + ") || "nothing";
}

class Chart {
  constructor(parent, title, names) {
    this.box = make("section", "chart");
    const head = make("header", "", title);
    this.now = make("b", "");
    head.append(this.now);
    this.canvas = document.createElement("canvas");
    this.legend = make("ul", "legend");
    this.names = names;
    this.off = new Set();
    this.rows = names.map((name, k) => {
      const item = make("li", "");
      const button = make("button", "", name);
      button.style.setProperty("--colour", COLOURS[k % COLOURS.length]);
      button.title = `show or hide ${name}`;
      button.setAttribute("aria-pressed", "true");
      button.onclick = () => {
        this.off.has(k) ? this.off.delete(k) : this.off.add(k);
        button.setAttribute("aria-pressed", String(!this.off.has(k)));
        this.drawn = "";
      };
      const number = make("span", "");
      item.append(button, number);
      this.legend.append(item);
      return number;
    });
    this.box.append(head, this.canvas);
    if (names.length > 1) this.box.append(this.legend);
    parent.append(this.box);
  }

  // at(frame, k) gives the number of the k-th line.
  draw(game, seconds, at) {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    if (!width) return;
    if (this.canvas.width !== Math.round(width * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const g = this.canvas.getContext("2d", { willReadFrequently: true }); // drawn by the processor: too small for a detour
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    const begin = Math.max(0, Math.min(seconds - BEFORE, game.length - BEFORE - AFTER));
    const first = Math.max(0, game.frameAt(begin) - 1);
    const last = Math.min(game.frames - 1, game.frameAt(begin + BEFORE + AFTER) + 1);
    let present = game.frameAt(seconds);
    if (present && Number.isNaN(at(present, 0))) present--; // nothing is decided in the last frame
    const sizes = [];
    let [low, high] = [0, 0];
    for (let f = first; f <= last; f++) {
      for (let k = 0; k < this.names.length; k++) {
        const value = this.off.has(k) ? NaN : at(f, k);
        if (value < low) low = value;
        if (value > high) high = value;
        if (value) sizes.push(Math.abs(value));
      }
    }
    const usual = sizes.sort((a, b) => a - b)[Math.floor(sizes.length * 0.98)] ?? 0;
    const cut = sizes.at(-1) > SPIKE * usual ? 1.4 * usual : Infinity;
    [low, high] = [Math.max(low, -cut), Math.min(high, cut)];
    if (high - low < 1e-6) high = low + 1;
    g.font = "10px system-ui, sans-serif";
    const left = 6 + Math.max(24, ...[low, high].map((value) => g.measureText(short(value)).width));
    const right = (time) => left + ((time - begin) / (BEFORE + AFTER)) * (width - left);
    const x = (f) => right(game.seconds[f]);
    const y = (value) => height - BOTTOM - 4 - ((value - low) / (high - low)) * (height - BOTTOM - 8);
    const style = getComputedStyle(this.canvas);
    g.strokeStyle = style.getPropertyValue("--line");
    g.fillStyle = style.getPropertyValue("--faint");
    g.lineWidth = 1;
    g.beginPath(), g.moveTo(left, y(0)), g.lineTo(width, y(0)), g.stroke();
    g.textAlign = "right";
    g.fillText(short(high), left - 4, 11);
    g.fillText(short(low), left - 4, height - BOTTOM - 1);
    g.textAlign = "center";
    for (let k = 0; k * TICK <= BEFORE + AFTER; k++) {
      const time = (Math.ceil(begin / TICK) + k) * TICK;
      if (right(time) > width + 1) break;
      g.beginPath(), g.moveTo(right(time), height - BOTTOM), g.lineTo(right(time), height - BOTTOM + 3), g.stroke();
      g.fillText(clock(time), Math.min(right(time), width - 11), height - 1);
    }
    g.save(), g.beginPath(), g.rect(left, 0, width - left, height - BOTTOM), g.clip();
    const spikes = [];
    this.names.forEach((_, k) => {
      this.rows[k].textContent = short(at(present, k));
      if (this.off.has(k)) return;
      g.strokeStyle = COLOURS[k % COLOURS.length];
      g.lineWidth = 1.5;
      g.beginPath();
      let open = false;
      for (let f = first; f <= last; f++) {
        const value = at(f, k);
        if (Number.isNaN(value)) open = false;
        else if (open) g.lineTo(x(f), y(value));
        else g.moveTo(x(f), y(value)), (open = true);
        if (Math.abs(value) > cut) spikes.push([value, x(f)]);
      }
      g.stroke();
    });
    const taken = []; // the largest number of those in one place
    for (const [value, at] of spikes.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]))) {
      const text = `${short(value)} ${value > 0 ? "▲" : "▼"}`;
      const half = g.measureText(text).width / 2 + 4;
      const middle = at + (at - 2 * half < left ? half : -half);
      if (taken.some(([other, far, sign]) => sign === Math.sign(value) && Math.abs(other - middle) < half + far)) continue;
      taken.push([middle, half, Math.sign(value)]);
      g.fillText(text, middle, value > 0 ? 9 : height - BOTTOM - 2);
    }
    g.strokeStyle = style.getPropertyValue("--text");
    g.globalAlpha = 0.6;
    g.beginPath(), g.moveTo(right(seconds), 0), g.lineTo(right(seconds), height), g.stroke();
    g.restore();
    const total = this.names.reduce((sum, _, k) => sum + (this.off.has(k) ? 0 : at(present, k) || 0), 0);
    this.now.textContent = this.names.length === 1 ? short(at(present, 0)) : short(total);
  }
}

function short(value) {
  if (!Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  return size === 0 ? "0" : size >= 100 ? value.toFixed(0) : size >= 1 ? value.toFixed(2) : value.toFixed(size >= 0.01 ? 3 : 5);
}

export class Inspector {
  constructor(element, app) {
    this.app = app;
    const { about, columns } = app.replay;
    this.has = new Set(columns.map((column) => column.name));
    this.teams = about.teams;
    this.cars = make("div", "cars");
    this.chips = about.teams.map((team, k) => {
      const chip = make("button", `team${team}`, app.carName(k));
      chip.onclick = () => app.select(k);
      this.cars.append(chip);
      return chip;
    });
    const gauges = make("div", "gauges");
    const gauge = (name, unit) => {
      const box = make("div", `gauge ${name}`);
      const number = make("b", "", "0");
      const fill = make("i", "");
      const label = make("span", "", name);
      box.append(label, number, make("small", "", unit), fill);
      gauges.append(box);
      return { label, number, fill };
    };
    this.boost = gauge("boost", "");
    this.speed = gauge("speed", "uu/s");
    this.state = make("p", "state");
    this.controls = make("div", "controls");
    this.bars = NAMES.map((name, k) => {
      const box = make("div", k < 5 ? "axis" : "button");
      box.append(make("span", "", name), make("i", ""));
      this.controls.append(box);
      return box;
    });
    element.replaceChildren(this.cars, gauges, this.state, this.controls);
    if (this.has.has("value")) this.value = new Chart(element, "value estimate", ["value"]);
    if (this.has.has("actions")) {
      const box = make("section", "actions");
      box.append(make("header", "", "most likely actions"));
      this.list = make("ol", "");
      this.items = Array.from({ length: window.innerHeight < 900 ? 3 : 5 }, () => {
        const item = make("li", "");
        item.append(make("i", ""), make("span", ""), make("b", ""));
        this.list.append(item);
        return item;
      });
      box.append(this.list);
      element.append(box);
    }
    if (this.has.has("rewards")) this.rewards = new Chart(element, "reward", about.rewards);
    this.element = element;
  }

  show(sample) {
    const { game, selected, seconds } = this.app;
    const car = sample.cars[selected];
    const c = game.columns;
    const n = this.teams.length;
    const f = sample.frame;
    this.chips.forEach((chip, k) => chip.setAttribute("aria-pressed", String(k === selected)));
    this.boost.number.textContent = Math.round(car.boost);
    this.boost.fill.style.width = `${car.boost}%`;
    this.speed.number.textContent = Math.round(car.speed);
    this.speed.label.textContent = `speed (${Math.round(car.speed * KMH)} km/h)`;
    this.speed.fill.style.width = `${car.speed / 23}%`;
    const words = [car.is_demoed ? "demolished" : car.on_ground ? "on wheels" : "in the air"];
    if (!car.on_ground && car.has_flip) words.push("has flip");
    if (car.is_supersonic) words.push("supersonic");
    if (car.touched) words.push("touches the ball");
    this.state.textContent = words.join(" · ");
    this.bars.forEach((bar, k) => {
      const value = c.car_controls[8 * (n * f + selected) + k];
      bar.style.setProperty("--value", k < 5 ? value : value > 0.5 ? 1 : 0);
      bar.classList.toggle("on", Math.abs(value) > 0.5);
    });
    if (this.value) this.value.draw(game, seconds, (t) => c.value[n * t + selected]);
    if (this.rewards) {
      const parts = this.app.replay.about.rewards.length;
      this.rewards.draw(game, seconds, (t, k) => c.rewards[parts * (n * t + selected) + k]);
    }
    if (this.list) {
      const most = c.actions.length / game.capacity / n;
      const table = this.app.replay.about.actions[this.teams[selected]];
      const shares = new Map();
      const decided = c.action_probabilities[most * (n * f + selected)] || !f ? f : f - 1;
      for (let k = 0; table && k < most; k++) {
        const at = most * (n * decided + selected) + k;
        const words = inWords(table[c.actions[at]], car.on_ground);
        shares.set(words, (shares.get(words) ?? 0) + c.action_probabilities[at]);
      }
      const likeliest = [...shares].filter(([, share]) => share > 0.004).sort((a, b) => b[1] - a[1]);
      this.items.forEach((item, k) => {
        const [words, share] = likeliest[k] ?? ["", 0];
        item.style.visibility = words ? "" : "hidden";
        item.children[0].style.width = `${share * 100}%`;
        item.children[1].textContent = words;
        item.children[2].textContent = `${Math.round(share * 100)} %`;
      });
    }
  }
}
