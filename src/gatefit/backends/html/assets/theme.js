/* Elements, canvases and colours: what every part of the page is made with. Text is only ever set as text. */

/** A new element: properties, then children (elements or text). Properties with a dash are attributes. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role" || name === "for") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

const byId = (id) => document.getElementById(id);

/** A field with its label, which is read out with it. */
function labelled(text, field, className = "field") {
  return element("label", { className }, element("span", {}, text), field);
}

function button(text, onclick, properties = {}) {
  return element("button", { type: "button", onclick, ...properties }, text);
}

/** A button that is on or off. */
function toggle(text, on, change, properties = {}) {
  const made = button(text, () => {
    const pressed = made.getAttribute("aria-pressed") !== "true";
    made.setAttribute("aria-pressed", String(pressed));
    change(pressed);
  }, { "aria-pressed": String(on), ...properties });
  return made;
}

function offscreen(width, height) {
  const canvas = element("canvas", { width, height });
  return [canvas, canvas.getContext("2d", { willReadFrequently: true })];
}

/** Match a canvas's pixels to the screen's; returns its size in CSS pixels and the pixels in one of them. */
function fitCanvas(canvas) {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const width = Math.max(1, canvas.clientWidth), height = Math.max(1, canvas.clientHeight);
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  return { width, height, ratio };
}

/** The style sheet's colours as [red, green, blue], read again after the theme changes. */
const palette = {};
const COLOURS = ["text", "muted", "card", "line", "accent", "on", "off", "ink", "paper", "warm", "cool",
  "constant", "separable", "weak", "strong"];

function readPalette() {
  const style = getComputedStyle(document.documentElement);
  for (const name of COLOURS) {
    const hex = style.getPropertyValue(`--${name}`).trim().slice(1);
    palette[name] = [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));
  }
}

const mix = (from, to, part) => from.map((value, i) => Math.round(value + (to[i] - value) * part));
const css = ([r, g, b], alpha = 1) => `rgba(${r},${g},${b},${alpha})`;

/** A colour as one number of an ImageData's 32-bit view (little-endian). */
const packed = ([r, g, b], alpha = 255) => (alpha << 24) | (b << 16) | (g << 8) | r;

const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

/** The button that changes between light and dark, and what happens when either does. */
function followTheme(control, changed) {
  const apply = () => {
    control.setAttribute("aria-pressed", String(isDark()));
    control.textContent = isDark() ? "Light mode" : "Dark mode";
    readPalette();
    changed();
  };
  control.onclick = () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    apply();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
}

/** Call `work` once before the next frame, however often it is asked for; flush() does it now. */
function oncePerFrame(work) {
  let asked = 0;
  const flush = () => {
    if (!asked) return;
    cancelAnimationFrame(asked);
    asked = 0;
    work();
  };
  const ask = () => { asked ||= requestAnimationFrame(() => { asked = 0; work(); }); };
  return Object.assign(ask, { flush });
}
