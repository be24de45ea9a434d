// Keyboard, mouse buttons and gamepad as the eight controls of a car.

const DEFAULTS = {
  forward: ["KeyW", "ArrowUp"], backward: ["KeyS", "ArrowDown"], left: ["KeyA", "ArrowLeft"], right: ["KeyD", "ArrowRight"],
  jump: ["Space", "Mouse2"], boost: ["ShiftLeft", "Mouse0"], slide: ["KeyX", "ControlRight"],
  rollLeft: ["KeyQ"], rollRight: ["KeyE"], camera: ["KeyC"], retry: ["KeyR"], next: ["KeyN"], menu: ["Escape", "KeyP"],
};
export const NAMES = {
  forward: "Throttle, nose down", backward: "Reverse, nose up", left: "Left", right: "Right", jump: "Jump, dodge", boost: "Boost",
  slide: "Powerslide, air roll", rollLeft: "Air roll left", rollRight: "Air roll right", camera: "Ball camera", retry: "Restart",
  next: "Next shot", menu: "Menu",
};
const TAPS = ["camera", "retry", "next", "menu"]; // act once, when pressed
const PAD = { jump: 0, boost: 1, slide: 2, camera: 3, rollLeft: 4, rollRight: 5, backward: 6, forward: 7, retry: 8, menu: 9 };
const STORED = "fabric-rl-controls";
const MOST = 127;
const throttle = (y) => Math.sign(y) * Math.min(1, Math.max(0, Math.abs(y) - 0.15) * 2); // a stick that is held sideways does not drive
const within = (value) => Math.max(-1, Math.min(1, value));

export const keyName = (code) =>
  ({ Mouse0: "left mouse", Mouse1: "middle mouse", Mouse2: "right mouse", Escape: "Esc", ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" })[code] ??
  code.replace(/^(Key|Digit)/, "").replace("Control", "Ctrl").replace(/(.+)(Left|Right)$/, (_, key, side) => `${side.toLowerCase()} ${key}`);

export class Input {
  // `tap(name)` is called for actions that act once, `changed(event)` when a held key has changed.
  constructor(surface, tap, changed) {
    Object.assign(this, { stick: { x: 0, y: 0 }, tap, changed, held: new Set(), padHeld: new Set(), enabled: true, waiting: null });
    this.load();
    document.addEventListener("keydown", (event) => this.press(event.code, event));
    document.addEventListener("keyup", (event) => this.release(event.code, event));
    document.addEventListener("pointerdown", (event) => {
      const bound = this.waiting && (event.button || event.target.matches(".waiting") || !event.target.closest("button, select, input"));
      if (event.pointerType === "mouse" && (bound || event.target === surface)) this.press(`Mouse${event.button}`, event);
    });
    document.addEventListener("pointerup", (event) => event.pointerType === "mouse" && this.release(`Mouse${event.button}`, event));
    document.addEventListener("contextmenu", (event) => event.preventDefault());
    window.addEventListener("blur", (event) => this.clear(event));
  }

  // Fingers: the stick on the left drives and steers, the buttons on the right are held. `begin()` is called at the first touch.
  listenTo(pad, begin) {
    const [knob, fingers] = [pad.querySelector("i"), new Map()];
    const lean = (event) => {
      const box = knob.parentElement.getBoundingClientRect();
      const half = box.width / 2;
      const [x, y] = [event.clientX - box.left - half, event.clientY - box.top - half].map((at) => at / half);
      const long = Math.max(1, Math.hypot(x, y));
      this.stick = { x: x / long, y: y / long };
      knob.style.transform = `translate(${this.stick.x * half * 0.6}px, ${this.stick.y * half * 0.6}px)`;
    };
    document.addEventListener("pointerdown", (event) => event.pointerType === "touch" && begin());
    pad.addEventListener("pointerdown", (event) => {
      const part = event.target.closest("[data-hold]");
      if (!part) return;
      event.preventDefault();
      pad.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, part.dataset.hold);
      if (part.dataset.hold === "stick") lean(event);
      else this.held.add(`Touch-${part.dataset.hold}`), part.classList.add("held");
      this.changed(event);
    });
    pad.addEventListener("pointermove", (event) => fingers.get(event.pointerId) === "stick" && (lean(event), this.changed(event)));
    for (const kind of ["pointerup", "pointercancel"])
      pad.addEventListener(kind, (event) => {
        const name = fingers.get(event.pointerId);
        if (!fingers.delete(event.pointerId)) return;
        if (name === "stick") (this.stick = { x: 0, y: 0 }), (knob.style.transform = "");
        else this.held.delete(`Touch-${name}`), pad.querySelector(`[data-hold=${name}]`).classList.remove("held");
        this.changed(event);
      });
  }

  load() {
    let stored = {};
    try {
      stored = JSON.parse(localStorage.getItem(STORED)) ?? {};
    } catch {} // no storage in this browser, or not ours
    const codes = (name) => (Array.isArray(stored.keys?.[name]) ? stored.keys[name].map(String) : [...DEFAULTS[name]]);
    this.keys = Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, codes(name)]));
    this.deadZone = stored.deadZone >= 0 && stored.deadZone <= 0.5 ? stored.deadZone : 0.12;
  }

  save() {
    try {
      localStorage.setItem(STORED, JSON.stringify({ keys: this.keys, deadZone: this.deadZone }));
    } catch {} // until the page is closed
  }

  reset() {
    try {
      localStorage.removeItem(STORED);
    } catch {}
    this.waiting = null;
    this.load();
  }

  // The next key that is pressed replaces all keys of an action, and an action that had it gets the first of these; Esc cancels.
  rebind(name, done) {
    this.waiting = { name, done };
    done();
  }

  bind(code) {
    const { name, done } = this.waiting;
    this.waiting = null;
    if (code !== "Escape") {
      for (const codes of Object.values(this.keys)) if (codes.includes(code)) codes.splice(codes.indexOf(code), 1, ...this.keys[name].slice(0, 1));
      this.keys[name] = [code];
      this.save();
    }
    done();
  }

  press(code, event) {
    if (this.waiting) {
      event.preventDefault();
      return this.bind(code);
    }
    const name = Object.keys(this.keys).find((action) => this.keys[action].includes(code));
    if (!name || event.metaKey || (!this.enabled && name !== "menu")) return;
    event.preventDefault();
    if (event.repeat || this.held.has(code)) return;
    if (TAPS.includes(name)) return this.tap(name);
    this.held.add(code);
    this.changed(event);
  }

  release(code, event) {
    if (this.held.delete(code)) this.changed(event);
  }

  clear(event) {
    this.held.clear();
    this.stick = { x: 0, y: 0 };
    this.changed(event);
  }

  // The stick without its dead zone, and the buttons, of the first gamepad.
  pad() {
    const pad = [...(navigator.getGamepads?.() ?? [])].find((each) => each?.connected);
    this.hasPad = Boolean(pad);
    if (!pad) return null;
    const [x, y] = pad.axes;
    const length = Math.hypot(x, y);
    const factor = length > this.deadZone ? Math.min(1, (length - this.deadZone) / (1 - this.deadZone)) / length : 0;
    for (const name of TAPS.filter((each) => each in PAD)) {
      if (!pad.buttons[PAD[name]]?.pressed) this.padHeld.delete(name);
      else if (!this.padHeld.has(name)) this.padHeld.add(name) && (this.enabled || name === "menu") && this.tap(name);
    }
    return { x: x * factor, y: y * factor, button: (name) => pad.buttons[PAD[name]]?.value ?? 0 };
  }

  // Throttle, steer, pitch, yaw, roll, jump, boost, powerslide; -127 to 127.
  read() {
    const pad = this.pad();
    if (!this.enabled) return new Int8Array(8);
    const { x, y } = this.stick;
    const keyboard = (name) => (this.held.has(`Touch-${name}`) || this.keys[name].some((code) => this.held.has(code)) ? 1 : 0);
    const key = (name) => Math.max(keyboard(name), pad?.button(name) ?? 0);
    const turn = within(key("right") - key("left") + (pad?.x ?? 0) + x);
    const pitch = within(keyboard("backward") - keyboard("forward") + (pad?.y ?? 0) + y);
    const slide = key("slide") > 0.5;
    const roll = within(key("rollRight") - key("rollLeft") + (slide ? turn : 0));
    const axes = [within(key("forward") - key("backward") - throttle(y)), turn, pitch, slide ? 0 : turn, roll];
    const buttons = [key("jump") > 0.5, key("boost") > 0.5, slide];
    return Int8Array.from([...axes, ...buttons].map((value) => Math.round(MOST * value)));
  }
}
