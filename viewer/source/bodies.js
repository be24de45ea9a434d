// What moves: the ball, cars with wheels and boost flames, shadows and trails.

import {
  AdditiveBlending, BoxGeometry, BufferAttribute, BufferGeometry, CanvasTexture, CircleGeometry, Color, ConeGeometry, CylinderGeometry,
  DoubleSide, DynamicDrawUsage, ExtrudeGeometry, Group, IcosahedronGeometry, Mesh, MeshBasicMaterial, MeshPhongMaterial,
  NormalBlending, Object3D, Points, PointsMaterial, RingGeometry, Shape, SphereGeometry, Vector3,
} from "three";
import { mergeGeometries } from "three/addons/utils/BufferGeometryUtils.js";
import { TEAM, UNIT } from "./place.js";

const BALL = 0.9125;
export const BURST_SECONDS = 1.8;
const WHITE = new Color(0xffffff);

// A side view (along the nose, height; uu) made as wide as it says, centred.
function extruded(points, width, bevel) {
  const shape = new Shape();
  points.forEach(([x, y], i) => (i ? shape.lineTo(x * UNIT, y * UNIT) : shape.moveTo(x * UNIT, y * UNIT)));
  const options = { depth: (width - 2 * bevel) * UNIT, bevelSize: bevel * UNIT, bevelThickness: bevel * UNIT, bevelSegments: 2 };
  return new ExtrudeGeometry(shape, options).translate(0, 0, -(width / 2 - bevel) * UNIT);
}

const BODY = extruded([[-50, -2], [66, -4], [70, 6], [62, 13], [22, 20], [-42, 22], [-52, 14]], 74, 4);
const CABIN = extruded([[-38, 20], [30, 18], [10, 36], [-24, 37]], 58, 5);
const WING = extruded([[-58, 34], [-42, 34], [-40, 38], [-60, 38]], 78, 1);
const STRUT = new BoxGeometry(0.06, 0.16, 0.5).translate(-0.48, 0.28, 0);
const WHEEL = new CylinderGeometry(1, 1, 0.16, 14).rotateX(Math.PI / 2);
const WHEELS = [[46, 36, 14], [46, -36, 14], [-36, 38, 16], [-36, -38, 16]];
const GRILLE = new BoxGeometry(0.05, 0.07, 0.34).translate(0.7, 0.02, 0);
const STRIPE = new CircleGeometry(0.24, 3).scale(1, 0.62, 1).rotateX(-Math.PI / 2).rotateZ(-0.22).translate(0.44, 0.21, 0); // points forward
// A team is known by its mark, too: a disc on blue's roof, a triangle on orange's.
const MARKS = [24, 3].map((corners) => new CircleGeometry([0.15, 0.2][Number(corners === 3)], corners).rotateX(-Math.PI / 2).translate(-0.08, 0.425, 0));
const FLAME = new ConeGeometry(0.15, 1, 12, 1, true).translate(0, 0.5, 0).rotateZ(Math.PI / 2);

// Parts in one colour each as one body, which is drawn at once.
function merged(parts) {
  const painted = parts.map(([geometry, colour]) => {
    const part = geometry.index ? geometry.toNonIndexed() : geometry.clone();
    part.deleteAttribute("uv");
    const { r, g, b } = new Color(colour);
    const count = part.attributes.position.count;
    const colours = new Float32Array(count * 3);
    for (let i = 0; i < count; i++) colours.set([r, g, b], 3 * i);
    return part.setAttribute("color", new BufferAttribute(colours, 3));
  });
  return mergeGeometries(painted);
}

const shiny = () => new MeshPhongMaterial({ vertexColors: true, shininess: 80, specular: 0x667788 });

function shadow(scene, radius) {
  const material = new MeshBasicMaterial({ color: 0x000000, transparent: true, opacity: 0.35, depthWrite: false });
  const mesh = new Mesh(new CircleGeometry(radius, 28).rotateX(-Math.PI / 2), material);
  scene.add(mesh);
  return mesh;
}

export class Ball {
  constructor(scene, radius) {
    this.size = (radius * UNIT) / BALL;
    this.group = new Group();
    this.group.scale.setScalar(this.size);
    const corners = new IcosahedronGeometry(BALL, 0).attributes.position;
    const parts = [[new SphereGeometry(BALL, 28, 20), 0xdfe6ee]];
    const seen = new Set();
    for (let i = 0; i < corners.count; i++) {
      const at = new Object3D();
      at.position.fromBufferAttribute(corners, i);
      const key = at.position.toArray().map((x) => x.toFixed(2)).join();
      if (seen.has(key)) continue;
      seen.add(key);
      at.lookAt(at.position.clone().multiplyScalar(2));
      at.position.multiplyScalar(1.005);
      at.updateMatrix();
      parts.push([new CircleGeometry(0.33, 5).applyMatrix4(at.matrix), parts.length % 4 === 1 ? 0xd2452f : 0x243242]);
    }
    this.group.add(new Mesh(merged(parts), shiny()));
    scene.add(this.group);
    this.shadow = shadow(scene, BALL * this.size);
    const ring = new MeshBasicMaterial({ color: 0xffffff, transparent: true, opacity: 0.55, depthWrite: false });
    this.ring = new Mesh(new RingGeometry(BALL * 1.1, BALL * 1.25, 40).rotateX(-Math.PI / 2), ring);
    scene.add(this.ring);
    this.trail = new Trail(scene, new Color(0xcfe3ff), 0.55, 0.7);
  }

  show(position, rotation, visible) {
    this.group.visible = this.shadow.visible = this.ring.visible = visible;
    this.group.position.copy(position);
    this.group.quaternion.copy(rotation);
    this.shadow.position.set(position.x, 0.05, position.z);
    this.ring.position.set(position.x, 0.06, position.z);
    const high = Math.max(0, position.y - BALL * this.size);
    this.ring.scale.setScalar(this.size * (1 + high * 0.06));
    this.ring.material.opacity = Math.min(0.6, high * 0.25);
  }
}

const SPARKS = 150;

function spot() {
  const canvas = Object.assign(document.createElement("canvas"), { width: 32, height: 32 });
  const g = canvas.getContext("2d");
  const glow = g.createRadialGradient(16, 16, 3, 16, 16, 16);
  for (const [at, share] of [[0, 1], [0.35, 0.9], [1, 0]]) glow.addColorStop(at, `rgba(255,255,255,${share})`);
  g.fillStyle = glow;
  g.fillRect(0, 0, 32, 32);
  return new CanvasTexture(canvas);
}

// What a goal sets off: sparks in the team's colour, and a wave of light; the same at the same age.
export class Burst {
  constructor(scene) {
    const geometry = new BufferGeometry().setAttribute("position", new BufferAttribute(new Float32Array(3 * SPARKS), 3));
    this.sparks = new Points(geometry, new PointsMaterial({ size: 0.7, map: spot(), transparent: true, depthWrite: false }));
    const light = () => new MeshBasicMaterial({ transparent: true, depthWrite: false, side: DoubleSide });
    this.wave = new Mesh(new SphereGeometry(1, 20, 14), light());
    this.ring = new Mesh(new RingGeometry(0.86, 1, 48).rotateX(-Math.PI / 2), light());
    this.group = new Group().add(this.sparks, this.wave, this.ring);
    this.sparks.frustumCulled = this.group.visible = false;
    scene.add(this.group);
  }

  // `age` seconds after the goal; without a goal (null) nothing is seen.
  show(goal, calm) {
    this.group.visible = Boolean(goal) && goal.age < BURST_SECONDS;
    if (!this.group.visible) return;
    const { age, place: from, team, facing } = goal;
    this.group.position.copy(from);
    const left = 1 - age / BURST_SECONDS;
    for (const { material } of [this.sparks, this.wave, this.ring]) material.color.set(TEAM[team]);
    this.sparks.visible = !calm;
    const at = this.sparks.geometry.attributes.position;
    for (let k = 0; k < SPARKS && !calm; k++) {
      const up = 1 - (2 * k + 1) / SPARKS;
      const around = k * 2.39996;
      const far = (9 + 8 * ((k * 0.618) % 1)) * (1 - Math.exp(-2.6 * age));
      const flat = Math.sqrt(1 - up * up) * far;
      at.setXYZ(k, flat * Math.cos(around), Math.max(0.1 - from.y, 0.7 * up * far - 2.2 * age * age), flat * Math.sin(around) + facing * far * 0.5);
    }
    at.needsUpdate = true;
    this.sparks.material.opacity = left ** 0.7;
    this.sparks.material.color.lerp(WHITE, 0.35 * left);
    this.wave.scale.setScalar(calm ? 3 : 1 + 5 * (1 - Math.exp(-5 * age)));
    this.wave.material.opacity = 0.3 * left ** 3;
    this.ring.scale.setScalar(calm ? 6 : 2 + 16 * (1 - Math.exp(-2 * age)));
    this.ring.position.y = 0.12 - from.y;
    this.ring.material.opacity = 0.8 * left;
  }
}

export class Car {
  constructor(scene, team, index) {
    const colour = new Color(TEAM[team]).offsetHSL(0, 0, [0, 0.1, -0.1][index % 3]);
    this.colour = colour;
    this.group = new Group();
    const wheel = (radius) => [
      [WHEEL.clone().scale(radius * UNIT, radius * UNIT, 1), 0x15181c],
      [WHEEL.clone().scale(radius * 0.55 * UNIT, radius * 0.55 * UNIT, 1.08), 0xaab4c0],
    ];
    const parts = [[BODY, colour], [CABIN, 0x10161f], [WING, colour], [STRUT, 0x10161f], [GRILLE, 0x10161f], [STRIPE, 0xf4f7fb]];
    parts.push([MARKS[team], 0xf4f7fb]);
    for (const z of [-0.24, 0.24]) {
      parts.push([new SphereGeometry(0.08, 8, 6).translate(0.68, 0.07, z * 1.1), 0xfff6d8]);
      parts.push([new BoxGeometry(0.04, 0.05, 0.14).translate(-0.55, 0.15, z), 0xff3344]);
    }
    for (const [x, y, radius] of WHEELS.slice(2)) {
      for (const [part, paint] of wheel(radius)) parts.push([part.translate(x * UNIT, (radius - 17) * UNIT, y * UNIT), paint]);
    }
    this.group.add(new Mesh(merged(parts), shiny()));
    this.wheels = WHEELS.slice(0, 2).map(([x, y, radius]) => {
      const front = new Mesh(merged(wheel(radius)), shiny());
      front.position.set(x * UNIT, (radius - 17) * UNIT, y * UNIT);
      this.group.add(front);
      return front;
    });
    const fire = (color, opacity) =>
      new Mesh(FLAME, new MeshBasicMaterial({ color, opacity, transparent: true, blending: AdditiveBlending, depthWrite: false, side: DoubleSide }));
    this.flames = [fire(0xff8a1f, 0.75), fire(0xfff2b0, 0.95)];
    for (const flame of this.flames) {
      flame.position.set(-0.56, 0.1, 0);
      this.group.add(flame);
    }
    const ring = new MeshBasicMaterial({ color: colour, transparent: true, opacity: 0.9, depthWrite: false });
    this.marker = new Mesh(new RingGeometry(1.05, 1.2, 36).rotateX(-Math.PI / 2), ring);
    scene.add(this.group, this.marker);
    this.shadow = shadow(scene, 0.62);
    this.trail = new Trail(scene, colour, 0.3, 0.65);
  }

  // Makes it a ghost, which is seen through.
  fade(opacity) {
    this.group.traverse(({ material }) => material && Object.assign(material, { opacity, transparent: true }));
    this.trail.mesh.visible = false;
  }

  show(position, rotation, { visible, boosting = false, steer, selected = false, time }) {
    this.group.visible = this.shadow.visible = visible;
    this.marker.visible = visible && selected;
    this.group.position.copy(position);
    this.group.quaternion.copy(rotation);
    this.shadow.position.set(position.x, 0.04, position.z);
    this.marker.position.set(position.x, 0.07, position.z);
    this.wheels[0].rotation.y = this.wheels[1].rotation.y = -steer * 0.45;
    const flicker = 0.85 + 0.15 * Math.sin(time * 61) + 0.1 * Math.sin(time * 97);
    this.flames[0].visible = this.flames[1].visible = boosting;
    this.flames[0].scale.set(1.15 * flicker, 1.25, 1.25);
    this.flames[1].scale.set(0.6 * flicker, 0.7, 0.7);
  }
}

const SAMPLES = 28;

// A ribbon through where something was, turned to the camera, fading with age.
export class Trail {
  constructor(scene, colour, width, opacity) {
    this.width = width;
    this.positions = new Float32Array(SAMPLES * 6);
    const colours = new Float32Array(SAMPLES * 8);
    const index = [];
    for (let i = 0; i < SAMPLES; i++) {
      const alpha = opacity * (1 - i / (SAMPLES - 1)) ** 1.6;
      colours.set([colour.r, colour.g, colour.b, alpha, colour.r, colour.g, colour.b, alpha], i * 8);
      if (i) index.push(2 * i - 2, 2 * i - 1, 2 * i, 2 * i - 1, 2 * i + 1, 2 * i);
    }
    const geometry = new BufferGeometry();
    geometry.setAttribute("position", new BufferAttribute(this.positions, 3).setUsage(DynamicDrawUsage));
    geometry.setAttribute("color", new BufferAttribute(colours, 4));
    geometry.setIndex(index);
    const material = new MeshBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false, side: DoubleSide, blending: NormalBlending });
    this.mesh = new Mesh(geometry, material);
    this.mesh.frustumCulled = false;
    scene.add(this.mesh);
  }

  // points: newest first, at most SAMPLES; shown tells which parts are drawn (one entry per point).
  update(points, shown, camera) {
    this.mesh.visible = points.length > 1;
    if (!this.mesh.visible) return;
    const along = new Vector3();
    const side = new Vector3();
    const view = new Vector3();
    for (let i = 0; i < SAMPLES; i++) {
      const p = points[Math.min(i, points.length - 1)];
      const q = points[Math.min(i + 1, points.length - 1)];
      if (q !== p) along.subVectors(p, q);
      view.subVectors(camera.position, p);
      side.crossVectors(along, view).normalize();
      const width = shown[Math.min(i, points.length - 1)] && i < points.length ? this.width * (1 - i / SAMPLES) : 0;
      side.multiplyScalar(Number.isFinite(side.x) ? width : 0);
      this.positions.set([p.x + side.x, p.y + side.y, p.z + side.z, p.x - side.x, p.y - side.y, p.z - side.z], i * 6);
    }
    this.mesh.geometry.attributes.position.needsUpdate = true;
  }
}
