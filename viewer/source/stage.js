// The picture: scene, lights and renderer, drawn no finer than the machine can.

import {
  Color, ColorManagement, DirectionalLight, Group, HemisphereLight, LinearSRGBColorSpace, PerspectiveCamera, Scene, Vector3, WebGLRenderer,
} from "three";
import { Ball, Burst, Car } from "./bodies.js";
import { Cameras } from "./cameras.js";
import { Field } from "./field.js";

const TRAIL_SECONDS = 1.1;
const TRAIL_POINTS = 28;

// Whether pictures are computed without a graphics card, where smooth edges cost too much.
function isSoftware() {
  const gl = document.createElement("canvas").getContext("webgl2");
  const names = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = names ? gl.getParameter(names.UNMASKED_RENDERER_WEBGL) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software/i.test(name);
}

export class Stage {
  constructor(canvas) {
    const software = (this.software = isSoftware());
    const context = canvas.getContext("webgl2", { alpha: false, antialias: !software, powerPreference: "high-performance" }); // three's own is mixed with the page behind it
    this.renderer = new WebGLRenderer({ canvas, context });
    if (software) { // without a curve of brightness to compute for every pixel
      ColorManagement.enabled = false;
      this.renderer.outputColorSpace = LinearSRGBColorSpace;
    }
    this.scene = new Scene();
    this.camera = new PerspectiveCamera(50, 1, 0.3, 600);
    this.field = new Field(this.scene, software);
    this.hemisphere = new HemisphereLight(0xffffff, 0x33404d, 1.6);
    this.sun = new DirectionalLight(0xffffff, software ? 1.3 : 2.2);
    this.sun.position.set(30, 80, 45);
    this.scene.add(this.hemisphere, this.sun);
    this.cameras = new Cameras(this.camera, canvas);
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.most = Math.min(window.devicePixelRatio || 1, 2);
    this.quality = software ? 0.85 : this.most;
    document.body.classList.toggle("coarse", software);
    this.pictures = this.passed = 0;
    this.patience = 3;
    this.covered = [0, 0];
    this.resize();
  }

  // Puts ball, cars and pads on the empty field, once it is known what is played.
  populate({ about, ballRadius }) {
    if (this.bodies) this.scene.remove(this.bodies);
    else this.field.addPads(this.scene, about.pads);
    this.bodies = new Group();
    this.scene.add(this.bodies);
    this.ball = new Ball(this.bodies, ballRadius);
    this.burst = new Burst(this.bodies);
    const seen = [0, 0];
    this.cars = about.teams.map((team) => new Car(this.bodies, team, seen[team]++));
  }

  // Says how many pixels are covered by panels on the right and at the bottom.
  cover(right, bottom) {
    this.covered = [right, bottom];
    this.resize();
  }

  setTheme(dark) {
    this.scene.background = new Color(dark ? 0x0b1119 : 0xd6e0ea);
    this.hemisphere.intensity = (dark ? 1.7 : 2.4) * (this.software ? 0.9 : 1); // its colours are brighter where they follow no curve
    this.field.setTheme(dark);
  }

  resize() {
    const { clientWidth, clientHeight } = this.renderer.domElement;
    const width = Math.max(1, clientWidth);
    const height = Math.max(1, clientHeight);
    this.renderer.setPixelRatio(this.quality);
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    // The middle of the picture is the middle of what the panels leave free.
    const [right, bottom] = this.covered;
    this.camera.setViewOffset(width, height, right / 2, bottom / 2, width, height);
    this.cameras.free = [1 - right / width, Math.max(0.3, 1 - bottom / height)];
    if (this.cameras.name === "free" && !this.touched) this.cameras.home();
    this.cameras.snap = true;
  }

  // Where pictures take too long, they get coarser; where there is time again, finer. Looks at whole seconds.
  adapt(elapsed) {
    this.pictures += 1;
    this.passed += elapsed;
    if (this.passed < 1 || this.pictures < 3) return;
    const rate = this.pictures / this.passed;
    this.pictures = this.passed = 0;
    const next = this.quality * (rate < 20 ? 0.75 : rate < 26 ? 0.88 : rate > 45 && this.patience-- < 0 ? 1.25 : 1);
    const quality = Math.max(0.6, Math.min(this.most, next));
    if (Math.abs(quality - this.quality) < 0.04) return;
    if (quality < this.quality) this.patience = 10;
    this.quality = quality;
    document.body.classList.toggle("coarse", quality < 1);
    this.resize();
  }

  // `goal`: the last one, if it was a moment ago: its age in seconds, place, team, the way out of its net, whether the ball is gone.
  draw(game, sample, { selected, trails, elapsed, marked = true, goal = null }) {
    this.field.showPads(game.columns.pad_timers, sample.frame);
    this.ball.show(sample.ball.position, sample.ball.rotation, !goal?.gone);
    this.burst.show(goal, this.calm);
    sample.cars.forEach((car, k) => {
      const how = { visible: car.visible, boosting: car.is_boosting && car.visible, steer: car.steer, selected: marked && k === selected, time: sample.seconds };
      this.cars[k].show(car.position, car.rotation, how);
    });
    const moved = this.cameras.update(sample, selected, elapsed, goal);
    const past = trails ? sample.history(game, sample.seconds, TRAIL_POINTS, TRAIL_SECONDS / TRAIL_POINTS) : null;
    this.ball.trail.update((!goal?.gone && past?.ball) || [], past?.ball.map(() => true) ?? [], this.camera);
    this.cars.forEach((car, k) => car.trail.update(past?.cars[k].points ?? [], past?.cars[k].boosting ?? [], this.camera));
    this.renderer.render(this.scene, this.camera);
    return moved;
  }

  // Where a place is on the page, in pixels; null behind the camera.
  project(position, height = 1.5) {
    const at = new Vector3().copy(position);
    at.y += height;
    at.project(this.camera);
    if (at.z > 1) return null;
    const { clientWidth, clientHeight } = this.renderer.domElement;
    return [((at.x + 1) / 2) * clientWidth, ((1 - at.y) / 2) * clientHeight, at.z];
  }
}
