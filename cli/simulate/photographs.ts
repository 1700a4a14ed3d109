/**
 * Generates pictures that cost as much to decode as photographs. They have the sizes, the bytes and
 * the decode time of ImageNet's, but show nothing: regions with sharp edges, each shaded and textured
 * with noise whose strength falls with its frequency, as in natural scenes, and a little grain.
 */

import type { RandomStream } from "../../core/philox.ts";

/** A picture before encoding. */
interface Photograph {
  width: number;
  height: number;
  /** RGB, `height * width * 3` bytes. */
  pixels: Uint8Array<ArrayBuffer>;
  /** JPEG quality to encode it with, 1 to 100. */
  quality: number;
}

/** Side of a texture in pixels. It is a power of two, so that a mask wraps coordinates. */
const TEXTURE_SIZE = 1024;
const TEXTURE_MASK = TEXTURE_SIZE - 1;
const TEXTURES = 3;
/**
 * Cells across a texture at the coarsest octave. Each further octave has twice as many cells and less
 * weight.
 */
const COARSEST_CELLS = 4;
const OCTAVE_GAIN = 0.86;

/** ImageNet's common sizes with their shares. The other sizes are spread widely around them. */
const COMMON_SIZES = [
  { share: 0.55, width: 500, height: 375 },
  { share: 0.18, width: 375, height: 500 },
  { share: 0.08, width: 500, height: 333 },
  { share: 0.04, width: 333, height: 500 },
];
const OTHER_LONG_SIDE = { median: 500, sigma: 0.4, min: 160, max: 1600 };
const OTHER_ASPECTS = [4 / 3, 3 / 2, 1, 16 / 9];
const PORTRAIT_SHARE = 0.3;

const QUALITY = { min: 92, max: 97 };
/**
 * Strength of textures, in grey levels. It is log-normal, because some scenes are smooth and some show
 * foliage.
 */
const DETAIL = { median: 36, sigma: 0.5 };
const GRAIN_LEVELS = 5;

/** A part of the picture with a colour, a light gradient and a position in the textures. */
interface Region {
  red: number;
  green: number;
  blue: number;
  slopeX: number;
  slopeY: number;
  detail: number;
  tint: number;
  texture: Float32Array;
  offsetX: number;
  offsetY: number;
}

/** Generates photographs from textures, which it generates once. */
export class PhotographMaker {
  readonly #textures: Float32Array[];
  readonly #grain: Int8Array;

  /** @param random Draws the textures. Pictures are equal only if their textures are. */
  constructor(random: RandomStream) {
    this.#textures = Array.from(
      { length: TEXTURES },
      (_, index) => fractalNoise(random.fork("texture").fork(index)),
    );
    this.#grain = grain(random.fork("grain"));
  }

  /** Generates a picture from `random`. */
  make(random: RandomStream): Photograph {
    const { width, height } = drawSize(random.fork("size"));
    const content = random.fork("content");
    const detail = DETAIL.median * Math.exp(DETAIL.sigma * content.normal());
    const regions: Region[] = [];
    const map = layOutRegions(content.fork("layout"), width, height, () => {
      regions.push(this.#drawRegion(content.fork(regions.length), detail, width, height));
      return regions.length - 1;
    });
    const pixels = this.#paint(map, regions, width, height, content.int(TEXTURE_SIZE ** 2));
    const quality = QUALITY.min + content.int(QUALITY.max - QUALITY.min + 1);
    return { width, height, pixels, quality };
  }

  #drawRegion(random: RandomStream, detail: number, width: number, height: number): Region {
    const grey = 80 + random.int(90);
    const colour = () => grey + random.int(70) - 35;
    return {
      red: colour(),
      green: colour(),
      blue: colour(),
      slopeX: (random.next() - 0.5) * 90 / width,
      slopeY: (random.next() - 0.5) * 90 / height,
      detail: detail * (0.4 + 1.2 * random.next()),
      tint: 0.6 * (random.next() - 0.5),
      texture: this.#textures[random.int(TEXTURES)]!,
      offsetX: random.int(TEXTURE_SIZE),
      offsetY: random.int(TEXTURE_SIZE),
    };
  }

  #paint(
    map: Uint8Array,
    regions: Region[],
    width: number,
    height: number,
    grainStart: number,
  ): Uint8Array<ArrayBuffer> {
    const pixels = new Uint8ClampedArray(width * height * 3);
    for (let y = 0, at = 0; y < height; y++) {
      for (let x = 0; x < width; x++, at++) {
        const region = regions[map[at]!]!;
        const row = ((y + region.offsetY) & TEXTURE_MASK) * TEXTURE_SIZE;
        const texture = region.texture[row + ((x + region.offsetX) & TEXTURE_MASK)]! *
          region.detail;
        const light = x * region.slopeX + y * region.slopeY + texture +
          this.#grain[(grainStart + at) & (this.#grain.length - 1)]!;
        pixels[at * 3] = region.red + light + texture * region.tint;
        pixels[at * 3 + 1] = region.green + light;
        pixels[at * 3 + 2] = region.blue + light - texture * region.tint;
      }
    }
    return new Uint8Array(pixels.buffer);
  }
}

function drawSize(random: RandomStream): { width: number; height: number } {
  let remaining = random.next();
  for (const { share, width, height } of COMMON_SIZES) {
    if (remaining < share) return { width, height };
    remaining -= share;
  }
  const { median, sigma, min, max } = OTHER_LONG_SIDE;
  const long = Math.min(max, Math.max(min, median * Math.exp(sigma * random.normal())));
  const short = long / OTHER_ASPECTS[random.int(OTHER_ASPECTS.length)]!;
  const isPortrait = random.next() < PORTRAIT_SHARE;
  return {
    width: Math.round(isPortrait ? short : long),
    height: Math.round(isPortrait ? long : short),
  };
}

/** Returns the region of each pixel: above or below a horizon, or one of the ellipses in front of it. */
function layOutRegions(
  random: RandomStream,
  width: number,
  height: number,
  addRegion: () => number,
): Uint8Array {
  const map = new Uint8Array(width * height);
  const horizon = Math.round(height * (0.25 + 0.5 * random.next()));
  map.fill(addRegion(), 0, horizon * width);
  map.fill(addRegion(), horizon * width);
  const ellipses = 3 + random.int(8);
  for (let ellipse = 0; ellipse < ellipses; ellipse++) {
    const size = Math.min(width, height) * (0.05 + 0.3 * random.next() ** 2);
    fillEllipse(map, width, height, {
      centreX: random.next() * width,
      centreY: random.next() * height,
      radiusX: size * (0.5 + random.next()),
      radiusY: size * (0.5 + random.next()),
      region: addRegion(),
    });
  }
  return map;
}

interface Ellipse {
  centreX: number;
  centreY: number;
  radiusX: number;
  radiusY: number;
  region: number;
}

function fillEllipse(map: Uint8Array, width: number, height: number, ellipse: Ellipse): void {
  const { centreX, centreY, radiusX, radiusY, region } = ellipse;
  const top = Math.max(0, Math.ceil(centreY - radiusY));
  const bottom = Math.min(height - 1, Math.floor(centreY + radiusY));
  for (let y = top; y <= bottom; y++) {
    const half = radiusX * Math.sqrt(1 - ((y - centreY) / radiusY) ** 2);
    const left = Math.max(0, Math.ceil(centreX - half));
    const right = Math.min(width, Math.floor(centreX + half) + 1);
    if (left < right) map.fill(region, y * width + left, y * width + right);
  }
}

/** Returns tileable noise with mean 0 and standard deviation 1: octaves of smoothed random values. */
function fractalNoise(random: RandomStream): Float32Array {
  const noise = new Float32Array(TEXTURE_SIZE * TEXTURE_SIZE);
  let amplitude = 1;
  for (let cells = COARSEST_CELLS; cells <= TEXTURE_SIZE; cells *= 2) {
    addOctave(noise, random.fork(cells), cells, amplitude);
    amplitude *= OCTAVE_GAIN;
  }
  let sum = 0;
  let squares = 0;
  for (const value of noise) {
    sum += value;
    squares += value * value;
  }
  const mean = sum / noise.length;
  const deviation = Math.sqrt(squares / noise.length - mean * mean);
  for (let at = 0; at < noise.length; at++) noise[at] = (noise[at]! - mean) / deviation;
  return noise;
}

/** Adds `cells`×`cells` random values, smoothly scaled up to the texture's size. */
function addOctave(
  noise: Float32Array,
  random: RandomStream,
  cells: number,
  amplitude: number,
): void {
  const values = new Float32Array(cells * cells);
  for (let at = 0; at < values.length; at++) values[at] = random.next() - 0.5;
  const pixelsPerCell = TEXTURE_SIZE / cells;
  const mask = cells - 1;
  for (let y = 0, at = 0; y < TEXTURE_SIZE; y++) {
    const cellY = Math.floor(y / pixelsPerCell);
    const upper = cellY * cells;
    const lower = ((cellY + 1) & mask) * cells;
    const weightY = smoothStep(y / pixelsPerCell - cellY);
    for (let x = 0; x < TEXTURE_SIZE; x++, at++) {
      const cellX = Math.floor(x / pixelsPerCell);
      const weightX = smoothStep(x / pixelsPerCell - cellX);
      const right = (cellX + 1) & mask;
      const above = values[upper + cellX]! * (1 - weightX) + values[upper + right]! * weightX;
      const below = values[lower + cellX]! * (1 - weightX) + values[lower + right]! * weightX;
      noise[at]! += amplitude * (above * (1 - weightY) + below * weightY);
    }
  }
}

function smoothStep(share: number): number {
  return share * share * (3 - 2 * share);
}

/** Returns the noise of a camera's sensor, in grey levels. */
function grain(random: RandomStream): Int8Array {
  const levels = new Int8Array(TEXTURE_SIZE * TEXTURE_SIZE / 4);
  for (let at = 0; at < levels.length; at++) {
    levels[at] = random.int(GRAIN_LEVELS) - (GRAIN_LEVELS >> 1);
  }
  return levels;
}
