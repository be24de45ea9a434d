// Five ways to look at a game.

import { MathUtils, Vector3 } from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";

export const CAMERAS = ["orbit", "chase", "ball", "top", "car"];

const UP = new Vector3(0, 1, 0);

export class Cameras {
  constructor(camera, canvas) {
    this.camera = camera;
    this.orbit = new OrbitControls(camera, canvas);
    Object.assign(this.orbit, { enableDamping: true, dampingFactor: 0.12, maxPolarAngle: 1.53, minDistance: 6, maxDistance: 170 });
    this.target = new Vector3();
    this.wanted = { position: new Vector3(), target: new Vector3() };
    this.choose("orbit");
  }

  choose(name) {
    this.name = name;
    this.orbit.enabled = name === "orbit";
    if (name === "orbit") this.home();
    this.snap = true;
  }

  // The whole field, as far away as the shape of the window asks for.
  home() {
    const wide = Math.min(1, this.camera.aspect / 1.6);
    this.camera.position.set(84, 58, 0).divideScalar(Math.max(0.4, wide));
    this.orbit.target.set(0, wide < 0.6 ? -12 : 0, 0);
    this.orbit.update();
  }

  // Follows what is shown; `seconds` have passed since the last picture. Returns whether the camera moved.
  update(sample, selected, seconds) {
    const { camera, wanted } = this;
    if (this.name === "orbit") {
      const fov = 50;
      const moved = this.orbit.update() || camera.fov !== fov;
      this.lens(fov);
      return moved;
    }
    const before = camera.position.clone();
    const ball = sample.ball.position;
    const car = sample.cars[selected];
    let pace = 6;
    if (this.name === "top") {
      wanted.target.set(ball.x * 0.1, 0, ball.z * 0.25);
      const far = camera.aspect > 1 ? 1 : Math.min(2, 0.9 / camera.aspect);
      wanted.position.copy(wanted.target).add({ x: 0.01, y: 88 * far, z: 0 });
      if (camera.aspect < 1) wanted.position.add({ x: -0.01, y: 0, z: 0.01 });
    } else if (this.name === "ball") {
      wanted.target.copy(ball);
      const away = new Vector3(62, 0, ball.z * 0.75).sub(ball).setY(0).normalize();
      wanted.position.copy(ball).addScaledVector(away, 24).add({ x: 0, y: 11, z: 0 });
      pace = 3.5;
    } else {
      const nose = new Vector3(1, 0, 0).applyQuaternion(car.rotation);
      const ahead = this.name === "chase" ? ball.clone().sub(car.position) : nose.clone();
      ahead.y *= this.name === "chase" ? 0.25 : 0.5;
      if (ahead.lengthSq() < 0.01) ahead.copy(nose).setY(0);
      ahead.normalize();
      wanted.position.copy(car.position).addScaledVector(ahead, this.name === "chase" ? -6.2 : -4.4).addScaledVector(UP, this.name === "chase" ? 2.9 : 1.7);
      wanted.position.y = Math.max(wanted.position.y, 0.6);
      const high = MathUtils.clamp(ball.y - car.position.y, 0, 9);
      if (this.name === "chase") wanted.target.copy(car.position).addScaledVector(ahead, 7).add({ x: 0, y: 0.9 + high * 0.35, z: 0 });
      else wanted.target.copy(car.position).addScaledVector(nose, 6).add({ x: 0, y: 0.6, z: 0 });
      pace = this.name === "chase" ? 9 : 14;
    }
    this.lens(this.name === "car" || this.name === "chase" ? 70 : 50);
    const far = camera.position.distanceTo(wanted.position) > 45;
    const share = this.snap || far ? 1 : 1 - Math.exp(-pace * seconds);
    camera.position.lerp(wanted.position, share);
    this.target.lerp(wanted.target, share);
    camera.lookAt(this.target);
    this.snap = false;
    return before.distanceToSquared(camera.position) > 1e-8;
  }

  lens(fov) {
    const wider = this.camera.aspect < 1 ? MathUtils.clamp(fov / this.camera.aspect, fov, 80) : fov;
    if (this.camera.fov === wider) return;
    this.camera.fov = wider;
    this.camera.updateProjectionMatrix();
  }
}
