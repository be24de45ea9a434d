// The page of a game that one plays: controls, stream, score and menu around the picture.

import { Car } from "./bodies.js";
import { Input, keyName, NAMES } from "./input.js";
import { LiveGame } from "./live.js";
import { place, turn } from "./place.js";
import { connect } from "./source.js";
import { Stage } from "./stage.js";
import { clock } from "./timeline.js";

const PULSE_MS = 8; // how often a gamepad is read
const HEARTBEAT_MS = 50; // how often the server hears of controls that do not change
const TICKS_PER_SECOND = 120;
const STILL = [0, 0, 0, 1, 0, 0, 0];
const ARC = 235.6; // length of the boost gauge's arc
const LABELS = { mode: "Game", opponent: "Opponent", cars: "Players", every: "Reactions", kind: "Shots" };
const TEXTS = {
  "free play": "Free play", "training pack": "Training pack", match: "Match", Striker: "score", Goalie: "save",
};
const REACTIONS = { 1: "normal", 2: "decides half as often", 3: "decides a third as often", 4: "decides a quarter as often", 8: "decides an eighth as often" };
const byId = (id) => document.getElementById(id);

export class Play {
  constructor() {
    this.status = {};
    this.number = 0;
    this.sent = "";
    this.heartbeat = 0;
    this.latencies = [];
    this.frames = 0;
    this.ballCamera = true;
    try {
      this.stage = new Stage(byId("picture"));
    } catch (error) {
      return this.say("This browser cannot show 3D graphics (WebGL)", error.message);
    }
    this.stage.setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches);
    this.stage.cameras.reach = 0.72;
    this.stage.renderer.render(this.stage.scene, this.stage.camera);
    this.input = new Input(byId("picture"), (name) => this.tap(name), (event) => this.send(event.timeStamp));
    document.body.classList.toggle("touching", window.matchMedia("(pointer: coarse)").matches);
    this.input.listenTo(byId("touch"), () => document.body.classList.add("touching"));
    byId("ballcam").addEventListener("click", () => this.tap("camera"));
    this.socket = connect({ bytes: (data) => this.frame(data), said: (it) => this.said(it), ended: (text) => this.end(text) });
    setInterval(() => this.send(performance.now()), PULSE_MS);
    new ResizeObserver(() => this.stage.resize()).observe(byId("picture"));
    document.addEventListener("visibilitychange", () => document.hidden && this.pause(true));
    byId("resume").addEventListener("click", () => this.pause(false));
    byId("again").addEventListener("click", () => this.command({ do: "again" }));
    byId("start").addEventListener("click", () => this.start());
    byId("rematch").addEventListener("click", () => this.command({ do: "again" }));
    byId("other").addEventListener("click", () => this.pause(true));
    byId("open").addEventListener("click", () => this.tap("menu"));
    byId("defaults").addEventListener("click", () => (this.input.reset(), this.listKeys()));
    byId("deadzone").addEventListener("input", (event) => ((this.input.deadZone = Number(event.target.value)), this.input.save()));
    byId("deadzone").value = this.input.deadZone;
    this.listKeys();
    this.before = performance.now();
    requestAnimationFrame((now) => this.tick(now));
  }

  // ------------------------------------------------------------------ to the server

  // Sends the controls if they have changed, or the server has not heard of them for a while.
  send(at) {
    const controls = this.input.read();
    const now = performance.now();
    const changed = this.sent !== (this.sent = controls.join());
    if (this.socket.readyState !== WebSocket.OPEN || !(changed || now - this.heartbeat > HEARTBEAT_MS)) return;
    this.heartbeat = now;
    this.number = (this.number + 1) % 65536;
    if (changed) this.pending ??= { number: this.number, at };
    const message = new DataView(new ArrayBuffer(10));
    message.setUint16(0, this.number, true);
    controls.forEach((value, k) => message.setInt8(2 + k, value));
    this.socket.send(message);
  }

  command(content) {
    byId("menu").hidden = true;
    if (this.input.waiting) this.input.bind("Escape");
    this.input.enabled = true;
    byId("picture").focus();
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(content));
  }

  tap(name) {
    if (name === "menu") this.pause(byId("menu").hidden);
    else if (name === "camera") this.ballCamera = !this.ballCamera;
    else if (this.status.phase === "over") name === "retry" && this.command({ do: "again" });
    else this.command({ do: name });
  }

  pause(on) {
    this.command({ do: "pause", on });
    byId("menu").hidden = !on;
    this.input.enabled = !on;
    if (on) this.input.held.clear();
    if (on) byId(byId("resume").hidden ? "start" : "resume").focus();
  }

  start() {
    const chosen = [...document.querySelectorAll("#choices select")].map((select) => [select.name, this.status.options[select.name][select.value]]);
    this.command({ do: "new", ...Object.fromEntries(chosen) });
  }

  // ------------------------------------------------------------------ from the server

  frame(data) {
    if (!this.game) return;
    const numbers = new Float32Array(data.buffer);
    this.echo = numbers[0];
    this.game.push(numbers.subarray(1), performance.now() / 1000);
  }

  said(status) {
    if ("live" in status) return;
    const before = this.status;
    this.status = status;
    document.body.dataset.phase = status.phase;
    document.body.dataset.mode = status.choice?.mode ?? "";
    if (status.options && !before.options) this.listChoices();
    if (status.player && !before.player) this.pause(!byId("menu").hidden); // whatever a page before this one has asked for
    if (status.teams && status.teams.join() !== before.teams?.join()) {
      this.stage.populate({ about: { pads: status.pads, teams: status.teams }, ballRadius: status.ball_radius });
      this.game = new LiveGame(status.teams.length);
      this.ghost = new Car(this.stage.bodies, 1, 0);
      this.ghost.fade(0.4);
      this.stage.cameras.choose("chase");
    }
    if (status.phase === "goal" && before.phase !== "goal" && this.game?.ready && status.scorer !== null) {
      const facing = status.scorer ? 1 : -1; // out of the net
      this.scored = { at: performance.now(), place: this.game.ball.position.clone(), team: status.scorer, facing, gone: true };
    } else if (status.phase !== "goal" && status.phase !== "paused") this.scored = null;
    this.hud();
  }

  end(text) {
    this.ended = true;
    this.say("", text === "The server has stopped." ? "The game has ended. Start it again and open the new address." : text);
  }

  say(big, small = "", team = "") {
    byId("big").textContent = big;
    byId("big").dataset.team = team;
    byId("small").textContent = small;
  }

  // ------------------------------------------------------------------ what is shown

  hud() {
    const { phase, score, names, choice, scorer, left, text, shot, saved, speed, player } = this.status;
    if (this.ended) return;
    byId("over").hidden = phase !== "over" || !byId("menu").hidden;
    byId("slow").hidden = !(speed < 0.97 && phase === "play");
    byId("slow").textContent = `This computer is too slow: the game runs at ${Math.round(100 * speed)} %.`;
    byId("title").textContent = phase === "over" ? "Menu" : "Paused";
    byId("resume").hidden = phase === "over";
    for (const id of ["again", "start", "rematch"]) byId(id).disabled = !player;
    const pack = choice?.mode === "training pack";
    const save = choice?.kind === "Goalie";
    if (names) {
      const you = choice.cars > 1 ? `You and ${this.status.options.opponent[0]}` : "You";
      byId("blue").textContent = choice.mode === "match" ? you : TEXTS[choice.mode];
      byId("orange").textContent = choice.mode === "match" ? names[1] : pack ? `Shot ${shot}` : `Goals: ${score[0]}`;
      [byId("blueScore").textContent, byId("orangeScore").textContent] = score;
    }
    const missed = scorer === 1 ? (save ? "Conceded" : "Own goal") : "Time's up";
    const words = {
      loading: ["", "Loading ..."],
      error: ["", text],
      countdown: [left, ""],
      ready: ["", `${save ? "Save the shot" : "Score a goal"}! The clock starts when you move.`],
      goal: pack && scorer !== 0 ? ["", save && scorer !== 1 ? "Saved!" : `${missed}. Try again.`] : ["GOAL!", "", scorer],
      paused: byId("menu").hidden ? ["", "Paused"] : ["", ""],
      over: score ? [score[0] > score[1] ? "You win" : "You lose", saved && `saved as ${saved} and .frd`, score[0] > score[1] ? 0 : 1] : ["", ""],
      play: ["", ""],
    }[phase] ?? ["", ""];
    if (!player && phase !== "loading") words[1] = "Another page is driving. Close it to play here.";
    this.say(...words);
  }

  tick(now) {
    requestAnimationFrame((next) => this.tick(next));
    const passed = (now - this.before) / 1000;
    this.before = now;
    if (!this.game?.ready) return;
    const { game, stage } = this;
    const echo = this.echo;
    game.take(performance.now() / 1000, this.status.phase === "play");
    const camera = this.ballCamera ? "chase" : "car";
    if (stage.cameras.name !== camera) stage.cameras.choose(camera);
    const goal = this.scored && { ...this.scored, age: (performance.now() - this.scored.at) / 1000 };
    this.showGhost(game.frames.at(-1).seconds - this.status.began);
    stage.draw(game, game, { selected: game.own, marked: false, trails: true, elapsed: Math.min(0.1, passed), goal });
    this.shown(echo);
    stage.adapt(passed);
    this.frames++;
    const car = game.cars[game.own];
    const boost = Math.round(car.boost);
    if (boost !== this.boost) {
      this.boost = boost;
      byId("boost").textContent = boost;
      byId("arc").style.strokeDashoffset = ARC * (1 - boost / 100);
    }
    document.body.classList.toggle("supersonic", car.is_supersonic);
    document.body.classList.toggle("ballcam", this.ballCamera);
    const { choice, length, began, score } = this.status;
    const played = game.frames.at(-1).seconds - began;
    const left = choice.mode === "match" ? length - played : Math.max(0, length - played);
    const time = choice.mode === "free play" ? clock(played) : left < 0 ? `+${clock(-left)}` : clock(Math.ceil(left));
    byId("overtime").hidden = !(left < 0 && score[0] === score[1]);
    if (time !== this.time) byId("clock").textContent = this.time = time;
  }

  // Counts how long it took until the picture contained what the newest key did.
  shown(echo) {
    if (!this.pending || (echo - this.pending.number + 65536) % 65536 > 32768) return;
    this.latencies.push(performance.now() - this.pending.at);
    if (this.latencies.length > 500) this.latencies.shift();
    this.pending = null;
  }

  // In training packs: where the bot's car was so long after it began with the same shot.
  showGhost(played) {
    const { ghost = [], skip, choice, phase } = this.status;
    const at = Math.max(0, (played * TICKS_PER_SECOND) / skip);
    const [from, to] = [ghost[Math.floor(at)], ghost[Math.floor(at) + 1]];
    const visible = Boolean(to) && choice.mode === "training pack" && ["ready", "play"].includes(phase);
    const [a, b] = visible ? [from, to] : [STILL, STILL];
    const rotation = turn(...a.slice(3)).slerp(turn(...b.slice(3)), at % 1);
    this.ghost.show(place(a[0], a[1], a[2]).lerp(place(b[0], b[1], b[2]), at % 1), rotation, { visible, steer: 0, time: 0 });
  }

  // ------------------------------------------------------------------ the menu

  listChoices() {
    const { options, choice } = this.status;
    const text = (name, value) =>
      name === "cars" ? `${value}v${value}` : name === "every" ? REACTIONS[value] : (TEXTS[value] ?? value);
    const rows = Object.entries(LABELS).map(([name, label]) => {
      const select = document.createElement("select");
      select.name = name;
      options[name].forEach((value, k) => select.add(new Option(text(name, value), k)));
      select.disabled = options[name].length < 2;
      select.value = choice ? options[name].indexOf(choice[name]) : 0;
      const row = document.createElement("label");
      row.append(label, select);
      row.className = name;
      return row;
    });
    byId("choices").replaceChildren(...rows);
    const show = () => (byId("choices").dataset.mode = options.mode[document.querySelector("#choices .mode select").value]);
    byId("choices").onchange = show;
    show();
  }

  listKeys() {
    const rows = Object.entries(NAMES).map(([name, label]) => {
      const button = document.createElement("button");
      const waits = this.input.waiting?.name === name;
      button.textContent = waits ? "press a key (Esc: cancel)" : this.input.keys[name].map(keyName).join(" or ") || "none";
      button.className = waits ? "waiting" : "";
      button.onclick = () => this.input.rebind(name, () => this.listKeys());
      const row = document.createElement("div");
      row.append(label, button);
      return row;
    });
    byId("bindings").replaceChildren(...rows);
    const key = (name) => keyName(this.input.keys[name][0] ?? "none");
    byId("rematch").textContent = `Rematch (${key("retry")})`;
    const hint = ["drive", "jump", "boost", "slide", "camera", "retry", "next", "menu"].map((name) => {
      const row = document.createElement("span");
      const text = name === "drive" ? ["forward", "left", "backward", "right"].map(key).join(" ") : key(name);
      row.append(Object.assign(document.createElement("kbd"), { textContent: text }), (NAMES[name] ?? name).split(",")[0].toLowerCase());
      row.className = name;
      return row;
    });
    byId("hints").replaceChildren(...hint);
  }
}
