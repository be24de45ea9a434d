// The page: time, keys and buttons around the picture.

import { CAMERAS } from "./cameras.js";
import { Inspector } from "./inspector.js";
import { Play } from "./play.js";
import { Replay } from "./replay.js";
import { Sample } from "./sample.js";
import { openSource } from "./source.js";
import { Stage } from "./stage.js";
import { clock, Timeline } from "./timeline.js";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8];
const DELAY_SECONDS = 0.3;
const INSPECT_EVERY_MS = 100; // numbers that change faster cannot be read
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
    this.trails = true;
    this.dirty = true;
    this.frames = this.inspected = 0;
    this.work = Promise.resolve();
    this.buttons();
    try {
      this.stage = new Stage(byId("picture"));
      this.theme();
      requestAnimationFrame(() => this.sample ?? this.stage.renderer.render(this.stage.scene, this.stage.camera)); // the empty field
    } catch (error) {
      return this.tell(`This browser cannot show 3D graphics (WebGL): ${error.message}`);
    }
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("error", ({ error }) => this.fail(error));
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
      byId("tags").append(tag);
      return tag;
    });
    this.listGames();
    this.camera(new URLSearchParams(location.search).get("camera") ?? "orbit");
    new ResizeObserver(() => this.arrange()).observe(byId("picture"));
    byId("picture").addEventListener("pointerdown", () => (this.stage.touched = this.dirty = true));
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
    this.seconds += elapsed * this.speed;
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
    const moved = this.stage.draw(game, sample, { selected: this.selected, trails: this.trails, elapsed });
    if (moved) this.dirty = true;
    this.frames++;
    this.timeline.show();
    const now = performance.now();
    if (document.body.classList.contains("inspecting") && (!this.playing || now - this.inspected > INSPECT_EVERY_MS)) {
      this.inspected = now;
      this.inspector.show(sample);
    }
    this.scoreboard();
    this.tags.forEach((tag, k) => {
      const car = sample.cars[k];
      const at = this.labels && car.visible && this.stage.project(car.position);
      tag.hidden = !at;
      if (!at) return;
      tag.style.transform = `translate(${at[0].toFixed(1)}px, ${at[1].toFixed(1)}px) translate(-50%, calc(-100% - 8px))`;
      tag.lastChild.style.width = `${car.boost}%`;
    });
  }

  scoreboard() {
    const goals = this.game.events.filter((event) => event.kind === "goal");
    const last = goals.findLast((event) => event.seconds <= this.seconds + 1e-3);
    const before = goals[0]?.score.map((count, team) => count - (team === goals[0].team)); // not 0 : 0 in a clip
    const score = last?.score ?? before ?? [0, 0];
    byId("title").textContent = this.game.named ? this.game.title : "";
    byId("score").textContent = `${score[0]} : ${score[1]}`;
    byId("clock").textContent = this.live ? clock(this.seconds) : `${clock(this.seconds)} / ${clock(this.game.length)}`;
    const fresh = last && this.seconds - last.seconds < 1.6;
    const banner = byId("banner");
    banner.hidden = !fresh;
    if (fresh) {
      banner.className = `team${last.team}`;
      banner.textContent = last.car === null ? "Goal!" : `Goal! ${this.carName(last.car)}`;
    }
  }

  // Shows one moment with the camera where it belongs, at full quality; what tests and screenshots ask for.
  still(seconds, camera) {
    this.fixed = true;
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
    if (this.atEnd) this.tell("");
    this.follow = this.atEnd = false;
    document.body.classList.remove("live");
    this.seconds = Math.max(0, Math.min(this.game.length, seconds));
    this.dirty = true;
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

  camera(name) {
    if (!CAMERAS.includes(name)) return;
    if (this.stage) {
      if (name === "orbit") this.stage.touched = false;
      this.stage.cameras.choose(name);
    }
    document.querySelectorAll("#cameras button").forEach((b) => b.setAttribute("aria-pressed", String(b.value === name)));
    this.dirty = true;
  }

  select(k) {
    this.selected = (k + this.replay.about.teams.length) % this.replay.about.teams.length;
    this.dirty = true;
  }

  inspect(open = !document.body.classList.contains("inspecting")) {
    document.body.classList.toggle("inspecting", open);
    byId("inspect").setAttribute("aria-pressed", String(open));
    this.arrange();
  }

  // Tells the picture what the panels cover.
  arrange() {
    const panel = byId("inspector").getBoundingClientRect();
    const wide = window.innerWidth > 900;
    const bottom = window.innerHeight - byId("bar").getBoundingClientRect().top;
    this.stage?.cover(wide ? panel.width : 0, wide || !panel.height ? bottom : window.innerHeight - panel.top);
    this.dirty = true;
  }

  theme(dark = window.matchMedia("(prefers-color-scheme: dark)").matches) {
    this.dark = dark;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.stage?.setTheme(dark);
    this.dirty = true;
  }

  async choose(number) {
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
    on("theme", () => this.theme(!this.dark));
    on("help", () => byId("keys").showModal());
    byId("speed").addEventListener("change", (event) => (this.speed = Number(event.target.value)));
    byId("games").addEventListener("change", (event) => this.choose(Number(event.target.value)));
    byId("cameras").addEventListener("click", (event) => event.target.value && this.camera(event.target.value));
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => this.theme(event.matches));
    document.body.classList.toggle("inspecting", window.innerWidth > 900);
    byId("inspect").setAttribute("aria-pressed", String(window.innerWidth > 900));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.sample || byId("keys").open) return;
    if (event.target.closest("select")) return;
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
      g: () => this.seek((this.game.events.find((e) => e.kind === "goal" && e.seconds > this.seconds + 3.1)?.seconds ?? 3) - 3),
      c: () => this.select(this.selected + 1),
      i: () => this.inspect(),
      n: () => ((this.labels = !this.labels), (this.dirty = true)),
      t: () => ((this.trails = !this.trails), (this.dirty = true)),
      "?": () => byId("keys").showModal(),
    };
    CAMERAS.forEach((name, k) => (acts[k + 1] = () => this.camera(name)));
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

window.viewer = byId("hud") ? new Play() : new App();
