// The page: time, keys and buttons around the picture.

import { CAMERAS } from "./cameras.js";
import { Inspector } from "./inspector.js";
import { Play } from "./play.js";
import { place } from "./place.js";
import { Replay } from "./replay.js";
import { Sample } from "./sample.js";
import { openSource } from "./source.js";
import { Stage } from "./stage.js";
import { clock, Timeline } from "./timeline.js";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8];
const DELAY_SECONDS = 0.3;
const INSPECT_EVERY_MS = 100; // numbers that change faster cannot be read
const REPLAY = { speed: 0.5, before: 2.4, after: 1.3, starts: 1.9 }; // seconds around the goal, and after it
const STORED = "fabric-rl-viewer";
const KMH = 0.036; // of one uu/s
const TAG = 22; // pixels from one name to the one above it
const CLICK = 6; // pixels that a pointer may move in a click
const byId = (id) => document.getElementById(id);

class App {
  constructor() {
    this.replay = new Replay();
    this.seconds = 0;
    this.number = 0;
    this.selected = 0;
    this.playing = true;
    this.speed = 1;
    this.follow = this.atEnd = false;
    this.waiting = "";
    this.labels = true;
    this.rerun = null; // the replay of a goal, and where it goes on from
    this.kept = {};
    try {
      this.kept = JSON.parse(localStorage.getItem(STORED)) ?? {};
    } catch {} // no storage in this browser, or not ours
    this.trails = true;
    this.dirty = true;
    this.frames = this.inspected = 0;
    this.work = Promise.resolve();
    this.buttons();
    try {
      this.stage = new Stage(byId("picture"));
      this.theme(this.kept.dark);
      requestAnimationFrame(() => this.sample ?? this.stage.renderer.render(this.stage.scene, this.stage.camera)); // the empty field
    } catch (error) {
      return this.tell(`This browser cannot show 3D graphics (WebGL): ${error.message}`);
    }
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("error", ({ error }) => error && this.fail(error));
    window.addEventListener("unhandledrejection", ({ reason }) => this.fail(reason));
    openSource({
      add: (bytes) => (this.work = this.work.then(() => this.add(bytes)).catch((error) => this.fail(error))),
      live: (settings) => this.beLive(settings),
      wait: (text) => this.wait(text),
      fail: (text) => (this.replay.about && !this.live ? null : this.tell(text)),
    });
  }

  get game() {
    return this.replay.games[this.number];
  }

  carName(k) {
    const { teams, names } = this.replay.about;
    const mates = teams.filter((team) => team === teams[k]).length;
    const place = teams.slice(0, k).filter((team) => team === teams[k]).length + 1;
    return mates > 1 ? `${names[teams[k]]} ${place}` : names[teams[k]];
  }

  beLive(settings) {
    this.live = settings.live;
    this.follow = settings.live;
    document.body.classList.toggle("live", this.follow);
    byId("goLive").hidden = !settings.live;
  }

  async add(bytes) {
    const before = this.replay.games.length;
    this.replay.add(bytes);
    if (this.replay.others && this.sample) return location.reload(); // other cars, other columns
    if (this.replay.games.length !== before && this.sample) this.listGames();
    const newest = this.follow || (this.waiting && !this.sample);
    if (newest && this.replay.games.length) this.number = this.replay.games.length - 1;
    if (!this.game) return;
    await this.game.load();
    if (!this.sample && this.game.frames) this.begin();
    if (this.atEnd) this.nextGame();
    this.dirty = true;
  }

  // What the server does: said where there is nothing to be seen.
  wait(text) {
    this.waiting = byId("loading").textContent = text;
    if (this.atEnd) this.tell(text);
  }

  // The game has been watched to its end: the one behind it, now or when it comes.
  nextGame() {
    this.atEnd = true;
    if (this.number + 1 >= this.replay.games.length) return this.tell(this.waiting);
    this.choose(this.number + 1).then(() => this.play(true));
  }

  begin() {
    const { about } = this.replay;
    document.body.classList.add("ready");
    document.title = `${about.title ?? about.names.join(" - ")} · fabric-rl`;
    byId("blue").textContent = about.names[0];
    byId("orange").textContent = about.names[1];
    this.stage.populate(this.replay);
    this.sample = new Sample(about.teams.length);
    this.timeline = new Timeline(byId("timeline"), this);
    this.inspector = new Inspector(byId("inspector"), this);
    this.tags = about.teams.map((team, k) => {
      const tag = document.createElement("div");
      tag.className = `tag team${team}`;
      tag.append(this.carName(k), document.createElement("i"));
      tag.addEventListener("click", () => this.ride(k));
      byId("tags").append(tag);
      return tag;
    });
    this.listGames();
    this.camera(new URLSearchParams(location.search).get("camera") ?? this.kept.camera ?? (this.stage.calm ? "free" : "director"));
    this.follows(byId("picture"));
    window.addEventListener("hashchange", () => this.open());
    this.open();
    const sizes = new ResizeObserver(() => requestAnimationFrame(() => this.arrange()));
    for (const element of [document.body, byId("bar")]) sizes.observe(element);
    byId("picture").addEventListener("pointerdown", () => (this.dirty = true));
    byId("picture").addEventListener("pointermove", () => this.view === "free" && (this.stage.touched = this.dirty = true));
    byId("picture").addEventListener("wheel", () => (this.stage.touched = this.dirty = true), { passive: true });
    this.before = performance.now();
    requestAnimationFrame((now) => this.tick(now));
  }

  tick(now) {
    const passed = (now - this.before) / 1000;
    const elapsed = Math.min(0.25, passed);
    this.before = now;
    if (this.playing) this.advance(elapsed);
    if (this.playing || this.dirty) {
      this.dirty = false;
      this.draw(elapsed);
      if (this.playing && !this.fixed) this.stage.adapt(passed);
    }
    requestAnimationFrame((next) => this.tick(next));
  }

  advance(elapsed) {
    const end = this.game.length;
    if (this.follow) {
      const late = end - DELAY_SECONDS - this.seconds;
      this.seconds = Math.abs(late) > 1.5 ? Math.max(0, end - DELAY_SECONDS) : this.seconds + elapsed * (1 + 0.6 * Math.max(-0.8, Math.min(0.8, late)));
      this.seconds = Math.max(0, Math.min(end, this.seconds));
      return;
    }
    const before = this.seconds;
    this.seconds += elapsed * (this.rerun ? REPLAY.speed : this.speed);
    if (this.rerun) return void (this.seconds >= this.rerun.until && this.endReplay());
    const goal = this.game.goalAt(before);
    if (goal && this.view === "director" && !this.stage.calm) {
      const due = Math.min(goal.seconds + REPLAY.starts, this.game.seconds[this.game.lastOf(goal.frame)] - 1e-3);
      if (before < due && this.seconds >= due && due > goal.seconds) return this.replayGoal(goal, due);
    }
    if (this.seconds < end) return;
    this.seconds = end;
    if (this.game.result || !this.live) this.play(false);
    if (this.game.result && !this.live) this.nextGame();
  }

  draw(elapsed) {
    const { game, sample } = this;
    if (!game.frames) return;
    this.seconds = Math.max(0, Math.min(this.seconds, game.length));
    sample.take(game, this.seconds);
    const goal = this.goal();
    sample.scorer = (this.rerun?.goal ?? goal)?.team;
    const moved = this.stage.draw(game, sample, { selected: this.selected, trails: this.trails, elapsed, goal });
    if (moved) this.dirty = true;
    this.frames++;
    this.timeline.show();
    const now = performance.now();
    if (document.body.classList.contains("inspecting") && (!this.playing || now - this.inspected > INSPECT_EVERY_MS)) {
      this.inspected = now;
      this.inspector.show(sample);
    }
    this.scoreboard();
    this.placeTags(sample.cars);
  }

  // The tags above the cars; where two would overlap, the higher one makes room.
  placeTags(cars) {
    const places = this.tags.map((tag, k) => {
      const at = this.labels && cars[k].visible && this.stage.project(cars[k].position);
      tag.hidden = !at;
      return at && { tag, x: at[0], y: at[1] - 8, half: (tag.width ??= tag.offsetWidth) / 2, boost: cars[k].boost };
    });
    const placed = [];
    const edge = byId("picture").clientWidth;
    for (const one of places.filter(Boolean).sort((a, b) => b.y - a.y)) {
      for (const other of placed) if (Math.abs(one.x - other.x) < one.half + other.half + 4 && one.y > other.y - TAG) one.y = other.y - TAG;
      placed.push(one);
      if (one.x > 0 && one.x < edge) one.x = Math.max(one.half + 4, Math.min(edge - one.half - 4, one.x));
      one.tag.style.transform = `translate(${one.x.toFixed(1)}px, ${one.y.toFixed(1)}px) translate(-50%, -100%)`;
      one.tag.lastChild.style.width = `${one.boost}%`;
    }
  }

  // The last goal, if it was a moment ago: what the picture shows of it.
  goal() {
    const { game, seconds } = this;
    const event = game.goalAt(seconds);
    if (!event || seconds - event.seconds > 4) return null;
    const [x, y, z] = game.columns.ball_pos.subarray(3 * event.frame, 3 * event.frame + 3);
    const gone = this.sample.frame >= event.frame && this.sample.frame <= game.lastOf(event.frame) && seconds > event.seconds + 0.02;
    return { age: seconds - event.seconds, place: place(x, y, z), team: event.team, facing: event.team ? 1 : -1, gone };
  }

  // Shows a goal again, slowly and from the scorer's side; then goes on from `from`.
  replayGoal(goal = this.rerun?.goal ?? this.game.goalAt(this.seconds), from = this.seconds) {
    if (!goal) return this.note("No goal yet.");
    const { game, follow, playing } = this;
    let first = goal.frame;
    while (first && !game.columns.begins[first]) first--;
    const until = Math.min(goal.seconds + REPLAY.after, game.seconds[game.lastOf(goal.frame)]);
    const back = this.rerun?.back ?? { seconds: from, follow, playing };
    this.seek(Math.max(game.seconds[first], goal.seconds - REPLAY.before));
    this.play(true);
    this.rerun = { goal, until, back };
    this.stage.cameras.choose("replay");
  }

  endReplay(back = this.rerun?.back) {
    if (!this.rerun) return;
    this.rerun = null;
    this.stage.cameras.choose(this.view, true);
    if (!back) return;
    this.seconds = back.seconds;
    if (!back.playing) this.play(false);
    if (back.follow) this.goLive();
    this.dirty = true;
  }

  scoreboard() {
    const last = this.rerun?.goal ?? this.game.goalAt(this.seconds);
    const goals = this.game.events.filter((event) => event.kind === "goal");
    const before = goals[0]?.score.map((count, team) => count - (team === goals[0].team)); // not 0 : 0 in a clip
    const score = last?.score ?? before ?? [0, 0];
    byId("title").textContent = this.game.named ? this.game.title : "";
    byId("score").textContent = `${score[0]} : ${score[1]}`;
    byId("clock").textContent = this.live ? clock(this.seconds) : `${clock(this.seconds)} / ${clock(this.game.length)}`;
    const fresh = last && Math.abs(this.seconds - last.seconds) < 2;
    const banner = byId("banner");
    banner.hidden = !fresh;
    if (fresh) {
      banner.className = `team${last.team}`;
      const speed = Math.hypot(...this.game.columns.ball_vel.subarray(3 * last.frame, 3 * last.frame + 3)) * KMH;
      const who = last.car === null ? "" : `${this.rerun ? ":" : ""} ${this.carName(last.car)}`;
      banner.replaceChildren(this.rerun ? "Replay" : "Goal!", who, Object.assign(document.createElement("small"), { textContent: `${Math.round(speed)} km/h` }));
    }
  }

  // Shows one moment with the camera where it belongs, at full quality; what tests and screenshots ask for.
  still(seconds, camera) {
    this.fixed = true;
    this.endReplay(null);
    this.play(false);
    if (camera) this.camera(camera);
    this.stage.quality = 1;
    this.arrange();
    this.seconds = seconds;
    this.stage.cameras.snap = true;
    this.draw(0);
    return this.stage.renderer.domElement.toDataURL("image/png");
  }

  seek(seconds) {
    this.endReplay(null);
    if (this.atEnd) this.tell("");
    this.follow = this.atEnd = false;
    document.body.classList.remove("live");
    this.seconds = Math.max(0, Math.min(this.game.length, seconds));
    this.dirty = true;
  }

  nextGoal() {
    const goal = this.game.events.find((e) => e.kind === "goal" && e.seconds > this.seconds + 3.1);
    goal ? this.seek(goal.seconds - 3) : this.note("No goal after this moment.");
  }

  step(count) {
    this.play(false);
    const at = Math.max(0, Math.min(this.game.frames - 1, this.game.frameAt(this.seconds + 1e-4) + count));
    this.seek(this.game.seconds[at]);
  }

  play(playing) {
    if (this.atEnd) this.tell("");
    this.atEnd = false;
    if (playing && !this.live && this.seconds >= this.game.length) this.seconds = 0;
    this.playing = playing;
    this.dirty = true;
    byId("play").setAttribute("aria-label", playing ? "pause" : "play");
    document.body.classList.toggle("paused", !playing);
    if (!playing) {
      this.follow = false;
      document.body.classList.remove("live");
    }
  }

  goLive() {
    this.endReplay(null);
    this.number = this.replay.games.length - 1;
    this.follow = true;
    this.speed = 1;
    document.body.classList.add("live");
    this.play(true);
    this.work = this.work.then(() => this.game.load());
  }

  faster(direction) {
    const at = SPEEDS.indexOf(this.speed) + direction;
    this.speed = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at))];
    byId("speed").value = this.speed;
    this.follow = false;
  }

  // `here`: the free camera begins where the camera is.
  camera(name, here = false) {
    if (name === "orbit") name = "free"; // as it was called
    if (!CAMERAS.includes(name)) return;
    this.view = name;
    if (name === "free") this.stage.touched = here;
    this.stage.cameras.choose(name, here);
    document.querySelectorAll("#cameras button").forEach((b) => b.setAttribute("aria-pressed", String(b.value === name)));
    this.dirty = true;
  }

  chooseCamera(name) {
    this.camera(name);
    this.keep({ camera: name });
  }

  select(k) {
    this.selected = (k + this.replay.about.teams.length) % this.replay.about.teams.length;
    this.dirty = true;
  }

  // Follows a car.
  ride(k) {
    this.select(k);
    if (!["chase", "car"].includes(this.view)) this.camera("chase");
  }

  // Dragging the picture frees the camera; a click on a car follows it.
  follows(canvas) {
    const { cameras } = this.stage;
    const { orbit, target } = cameras;
    let from = null;
    document.addEventListener("pointerdown", (event) => {
      if (event.target !== canvas) return;
      from = [event.clientX, event.clientY];
      if (cameras.name !== "free") orbit.target.copy(target);
      orbit.enabled = true;
    }, { capture: true });
    canvas.addEventListener("pointermove", (event) => {
      if (!from || Math.hypot(event.clientX - from[0], event.clientY - from[1]) < CLICK) return;
      from = null;
      if (cameras.name !== "free") this.camera("free", true);
    });
    canvas.addEventListener("pointerup", (event) => {
      orbit.enabled = cameras.name === "free";
      if (!from) return;
      from = null;
      const far = this.sample.cars.map((car) => {
        const at = car.visible && this.stage.project(car.position, 0);
        return at ? Math.hypot(at[0] - event.clientX, at[1] - event.clientY) : Infinity;
      });
      const nearest = far.indexOf(Math.min(...far));
      if (far[nearest] < 45) this.ride(nearest);
    });
  }

  // Goes where the address says: #t=38&camera=chase&car=1&game=2.
  async open() {
    const said = new URLSearchParams(location.hash.slice(1));
    const number = (name) => (said.has(name) && Number.isFinite(Number(said.get(name))) ? Number(said.get(name)) : null);
    const place = (name) => Math.max(0, Math.trunc(number(name)) - 1);
    if (number("game") !== null) await this.choose(place("game"));
    if (number("car") !== null) this.select(place("car"));
    if (said.has("camera")) this.camera(said.get("camera"));
    if (number("t") !== null) this.seek(number("t"));
    this.stage.cameras.snap = true;
  }

  async copyLink() {
    const game = this.number ? `&game=${this.number + 1}` : "";
    const link = new URL(`#t=${this.seconds.toFixed(1)}&camera=${this.view}&car=${this.selected + 1}${game}`, location.href).href;
    try {
      await navigator.clipboard.writeText(link);
      this.note("Link copied.");
    } catch {
      window.prompt("Copy this link:", link);
    }
  }

  // Saves the picture with names and score.
  screenshot() {
    this.draw(0);
    const { domElement: picture } = this.stage.renderer;
    const canvas = Object.assign(document.createElement("canvas"), { width: picture.width, height: picture.height });
    const g = canvas.getContext("2d");
    g.drawImage(picture, 0, 0);
    const size = Math.max(12, canvas.width / 42);
    g.font = `700 ${size}px system-ui, sans-serif`;
    const said = [byId("blue"), byId("score"), byId("orange")];
    const widths = said.map(({ textContent }) => g.measureText(textContent).width + size);
    let at = canvas.width / 2 - widths[0] - widths[1] / 2;
    said.forEach((element, k) => {
      g.fillStyle = ["#1f66e5", "#10171f", "#c9560a"][k];
      g.fillRect(at, size * 0.5, widths[k], size * 1.7);
      g.fillStyle = "#fff";
      g.fillText(element.textContent, at + size / 2, size * 1.7);
      at += widths[k];
    });
    Object.assign(document.createElement("a"), { href: canvas.toDataURL("image/png"), download: `fabric-rl-${clock(this.seconds).replace(":", "-")}.png` }).click();
  }

  fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen?.().catch(() => this.note("This browser does not allow full screen here."));
  }

  keep(what) {
    Object.assign(this.kept, what);
    try {
      localStorage.setItem(STORED, JSON.stringify(this.kept));
    } catch {} // until the page is closed
  }

  inspect(open = !document.body.classList.contains("inspecting")) {
    document.body.classList.toggle("inspecting", open);
    byId("inspect").setAttribute("aria-pressed", String(open));
    this.arrange();
  }

  // Tells the picture what the panels cover.
  arrange() {
    const wide = window.innerWidth > 900;
    const bottom = window.innerHeight - byId("bar").getBoundingClientRect().top;
    document.body.style.setProperty("--bar", `${bottom}px`);
    const panel = byId("inspector").getBoundingClientRect();
    const side = wide ? panel.width : 0;
    const below = wide || !panel.height ? bottom : window.innerHeight - panel.top;
    const { software } = this.stage;
    Object.assign(byId("picture").style, software ? { width: side ? `${panel.left - 8}px` : "100%", height: `${window.innerHeight - below - 6}px` } : {});
    this.stage.cover(software ? 0 : side, software ? 0 : below); // without a graphics card only what is seen is drawn
    this.dirty = true;
  }

  theme(dark = window.matchMedia("(prefers-color-scheme: dark)").matches) {
    this.dark = dark;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.stage?.setTheme(dark);
    this.dirty = true;
  }

  async choose(number) {
    this.endReplay(null);
    this.number = Math.max(0, Math.min(this.replay.games.length - 1, number));
    this.follow = false;
    this.seconds = 0;
    byId("games").value = this.number;
    await (this.work = this.work.then(() => this.game.load()));
    this.stage.cameras.snap = true;
    this.dirty = true;
  }

  listGames() {
    const games = byId("games");
    games.hidden = this.replay.games.length < 2;
    while (games.length < this.replay.games.length) games.add(new Option(this.replay.games[games.length].title, games.length));
    games.value = this.number;
  }

  // Says something for a moment.
  note(text) {
    this.tell(text);
    clearTimeout(this.noted);
    this.noted = setTimeout(() => byId("message").textContent === text && this.tell(""), 2500);
  }

  tell(text) {
    byId("message").textContent = text;
    byId("message").hidden = !text;
  }

  // Says an error of the reader; any other one means that a forged replay has passed it.
  fail(error) {
    this.tell(error?.constructor === Error ? error.message : "This replay is damaged.");
  }

  buttons() {
    const on = (id, act) => byId(id).addEventListener("click", act);
    on("play", () => this.play(!this.playing));
    on("back", () => this.step(-1));
    on("forward", () => this.step(1));
    on("goLive", () => this.goLive());
    on("inspect", () => this.inspect());
    on("theme", () => (this.theme(!this.dark), this.keep({ dark: this.dark })));
    on("link", () => this.copyLink());
    on("shot", () => this.screenshot());
    on("full", () => this.fullScreen());
    on("again", () => this.replayGoal());
    on("help", () => byId("keys").showModal());
    byId("speed").addEventListener("change", (event) => (this.speed = Number(event.target.value)));
    byId("games").addEventListener("change", (event) => this.choose(Number(event.target.value)));
    byId("cameras").addEventListener("click", (event) => event.target.value && this.chooseCamera(event.target.value));
    byId("bar").addEventListener("click", (event) => event.detail && document.activeElement?.closest("button")?.blur()); // keys are the picture's again
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => this.kept.dark ?? this.theme(event.matches));
    document.body.classList.toggle("inspecting", window.innerWidth > 900);
    byId("inspect").setAttribute("aria-pressed", String(window.innerWidth > 900));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.sample || byId("keys").open) return;
    if (event.target.closest("select") || ([" ", "Enter"].includes(event.key) && event.target.closest("button"))) return;
    const acts = {
      " ": () => this.play(!this.playing),
      ArrowLeft: () => this.seek(this.seconds - 5),
      ArrowRight: () => this.seek(this.seconds + 5),
      ",": () => this.step(-1),
      ".": () => this.step(1),
      ArrowUp: () => this.faster(1),
      ArrowDown: () => this.faster(-1),
      Home: () => this.seek(0),
      End: () => (this.live ? this.goLive() : this.seek(this.game.length)),
      g: () => this.nextGoal(),
      r: () => this.replayGoal(),
      l: () => this.copyLink(),
      s: () => this.screenshot(),
      f: () => this.fullScreen(),
      c: () => this.select(this.selected + 1),
      i: () => this.inspect(),
      n: () => ((this.labels = !this.labels), (this.dirty = true)),
      t: () => ((this.trails = !this.trails), (this.dirty = true)),
      "?": () => byId("keys").showModal(),
    };
    CAMERAS.forEach((name, k) => (acts[k + 1] = () => this.chooseCamera(name)));
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

window.viewer = byId("hud") ? new Play() : new App();
