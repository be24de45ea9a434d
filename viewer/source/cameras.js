// Ways to look at a game.

import { MathUtils, Vector3 } from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";

export const CAMERAS = ["director", "free", "chase", "ball", "top", "car"];
const FIELD = [46, 57]; // where a camera beside the play may be, half of width and length
const [SIDE, GOAL] = [41, 51.2];

const UP = new Vector3(0, 1, 0);

export class Cameras {
  constructor(camera, canvas) {
    this.camera = camera;
    this.orbit = new OrbitControls(camera, canvas);
    Object.assign(this.orbit, { enableDamping: true, dampingFactor: 0.12, maxPolarAngle: 1.53, minDistance: 6, maxDistance: 170 });
    this.target = new Vector3();
    this.reach = 1; // how far from its car a camera is
    this.free = [1, 1]; // shares of width and height that no panel covers
    this.wanted = { position: new Vector3(), target: new Vector3() };
    this.choose("director");
  }

  // `here`: the free camera begins where the camera is, and not with the whole field.
  choose(name, here = false) {
    this.name = name;
    this.orbit.enabled = name === "free";
    if (name === "free" && !here) this.home();
    this.snap = true;
  }

  // The whole field, as far away as what is free of the window asks for.
  home() {
    const wide = this.camera.aspect * this.free[0];
    const factor = Math.max(1, 0.72 / this.free[1], (wide > this.free[1] ? 1.45 : 0.55) / wide);
    if (wide > this.free[1]) this.camera.position.set(-80, 56, 0);
    else this.camera.position.set(0, 74, -88);
    this.camera.position.multiplyScalar(factor);
    this.orbit.target.set(0, 2, 0);
    this.orbit.update();
  }

  // Follows what is shown; `seconds` have passed since the last picture. Returns whether the camera moved.
  update(sample, selected, seconds, goal = null) {
    const { camera, wanted } = this;
    if (this.name === "free") {
      const fov = 50;
      const moved = this.orbit.update() || camera.fov !== fov;
      this.lens(fov);
      return moved;
    }
    const before = camera.position.clone();
    const ball = sample.ball.position;
    const car = sample.cars[selected];
    let pace = 6;
    if (this.name === "replay" || (this.name === "director" && goal?.gone)) {
      pace = this.name === "replay" ? 3 : 1.5;
      this.fromScorer(goal?.gone ? goal.place : ball, sample.scorer, goal?.gone ? 20 : 11);
    } else if (this.name === "director") {
      pace = this.direct(sample);
    } else if (this.name === "top") {
      const wide = camera.aspect * this.free[0] > this.free[1];
      const [across, along] = wide ? [126, 90] : [90, 126];
      this.lens(50);
      const reach = 2 * Math.tan(MathUtils.degToRad(camera.fov) / 2);
      wanted.target.set(0, 0, 0);
      wanted.position.set(wide ? -0.01 : 0, Math.max(along / this.free[1], across / camera.aspect / this.free[0]) / reach, wide ? 0 : -0.01);
    } else if (this.name === "ball") {
      wanted.target.copy(ball);
      const away = new Vector3(-62, 0, ball.z * 0.75).sub(ball).setY(0).normalize();
      wanted.position.copy(ball).addScaledVector(away, 24).add({ x: 0, y: 11, z: 0 });
      pace = 3.5;
    } else {
      const nose = new Vector3(1, 0, 0).applyQuaternion(car.rotation);
      const ahead = this.name === "chase" ? ball.clone().sub(car.position) : this.way(car, nose);
      ahead.y *= 0.25;
      if (ahead.lengthSq() < 0.01) ahead.copy(nose).setY(0);
      ahead.normalize();
      const [back, above] = this.name === "chase" ? [5.6, 2.6] : [4, 1.55];
      const away = this.reach / Math.max(0.4, this.free[1]);
      wanted.position.copy(car.position).addScaledVector(ahead, -back * away).addScaledVector(UP, above * away);
      wanted.position.y = Math.max(wanted.position.y, 0.6);
      const high = MathUtils.clamp(ball.y - car.position.y, 0, 9);
      if (this.name === "chase") wanted.target.copy(car.position).addScaledVector(ahead, 7).add({ x: 0, y: 0.9 + high * 0.35 * this.reach, z: 0 });
      else wanted.target.copy(car.position).addScaledVector(ahead, 6).add({ x: 0, y: 0.6, z: 0 });
      pace = this.name === "chase" ? 9 : 14;
    }
    this.lens(this.name === "car" || this.name === "chase" ? 70 : 50);
    const far = camera.position.distanceTo(wanted.position) > (this.name === "director" ? 80 : 45);
    const share = this.snap || far ? 1 : 1 - Math.exp(-pace * seconds);
    camera.position.lerp(wanted.position, share);
    this.target.lerp(wanted.target, share);
    camera.lookAt(this.target);
    this.snap = false;
    return before.distanceToSquared(camera.position) > 1e-8;
  }

  // Beside the field, wide before a kickoff is taken and closer the closer cars are to the ball. Returns the pace.
  direct({ ball, cars, kickoff: begins }) {
    const { wanted, camera } = this;
    const kickoff = begins && cars.every((car) => car.position.distanceTo(ball.position) > 14);
    const there = cars.filter((car) => car.visible).map((car) => [car.position, Math.exp(-car.position.distanceTo(ball.position) / 18)]);
    const weight = there.reduce((sum, [, share]) => sum + share, 0);
    const spread = there.reduce((sum, [place, share]) => sum + share * place.distanceTo(ball.position), 0) / (weight + 0.15);
    const upright = camera.aspect * this.free[0] < this.free[1]; // blue's goal is at the bottom of an upright picture, else on the left
    const tight = upright ? 1.15 : Math.max(0.6, Math.min(1, this.free[1] * 1.2, camera.aspect * this.free[0] - 0.15));
    const reach = (kickoff ? 78 : 13 + 1.3 * spread + 0.35 * ball.position.y) / tight;
    wanted.target.copy(ball.position).multiplyScalar(0.94);
    for (const [place, share] of there) wanted.target.addScaledVector(place.clone().sub(ball.position), (0.7 * share) / (weight + 0.6));
    if (kickoff) wanted.target.multiplyScalar(0.3);
    wanted.target.y = 0.6 * wanted.target.y + 0.6;
    const near = upright ? "z" : "x"; // little is seen of what lies outside the field
    wanted.target[near] = Math.max(wanted.target[near], 0.45 * reach - (upright ? GOAL : SIDE));
    const height = 0.34 + 0.25 * Math.min(1, reach / 60);
    const along = -0.3 * (wanted.target.z / GOAL);
    const way = upright ? new Vector3(-0.3 * (wanted.target.x / SIDE), height, -1) : new Vector3(-1, height, along);
    wanted.position.copy(wanted.target).addScaledVector(way.normalize(), reach);
    return kickoff ? 1.2 : 2.2;
  }

  // Behind the ball, as the scorer's team saw it going to the goal; `scorer` is that team.
  fromScorer(ball, scorer, back) {
    const { wanted } = this;
    const goal = new Vector3(0, 0, scorer ? -GOAL : GOAL);
    const away = ball.clone().sub(goal).setY(0).add({ x: 0, y: 0, z: scorer ? 6 : -6 }).normalize();
    const reach = back / Math.max(0.5, Math.min(1, this.camera.aspect * this.free[0]));
    wanted.target.copy(ball);
    wanted.position.copy(ball).addScaledVector(away, reach);
    wanted.position.x = MathUtils.clamp(wanted.position.x + (ball.x > 0 ? -3 : 3), -FIELD[0] + 8, FIELD[0] - 8);
    wanted.position.z = MathUtils.clamp(wanted.position.z, -FIELD[1] + 10, FIELD[1] - 10);
    wanted.position.y = Math.max(2.2, ball.y * 0.6 + back * 0.27);
  }

  // Where a car goes: on wheels along its nose, in the air along its flight; one that flips or lies goes on as it went.
  way(car, nose) {
    const way = car.on_ground ? nose.clone() : car.velocity.clone().multiplyScalar(0.1);
    const flat = Math.hypot(way.x, way.z);
    if (flat > 0.3) this.heading = way.divideScalar(flat).setY(MathUtils.clamp(way.y, -1, 1));
    else if (this.snap || !this.heading) this.heading = nose.clone().setY(0).add({ x: 0, y: 0, z: 1e-6 }).normalize();
    return this.heading.clone();
  }

  lens(fov) {
    const wider = this.camera.aspect < 1 ? MathUtils.clamp(fov / this.camera.aspect, fov, 80) : fov;
    if (this.camera.fov === wider) return;
    this.camera.fov = wider;
    this.camera.updateProjectionMatrix();
  }
}
