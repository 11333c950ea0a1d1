/** The source of randomness. `platform/process/random.ts` has the secure one; tests and the simulator use a seeded one. */
export type Random = {
  bytes(count: number): Uint8Array
  /** Uniform in [0, 1). */
  float(): number
}

/** A whole number in [0, limit). */
export function randomInt(random: Random, limit: number): number {
  return Math.floor(random.float() * limit)
}

/** The same sequence for the same seed. Not for secrets. Generator: xoshiro128** (Blackman, Vigna 2018). */
export function createSeededRandom(seed: number): Random {
  let mix = seed >>> 0
  // splitmix32 spreads the seed over the state, as the generator's authors ask.
  const nextMix = () => {
    mix = (mix + 0x9e3779b9) | 0
    let z = Math.imul(mix ^ (mix >>> 16), 0x21f0aaad)
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97)
    return (z ^ (z >>> 15)) >>> 0
  }
  let a = nextMix()
  let b = nextMix()
  let c = nextMix()
  let d = nextMix()

  const next = () => {
    const scrambled = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = rotate(d, 11)
    return scrambled
  }

  return {
    bytes(count) {
      const bytes = new Uint8Array(count)
      for (let at = 0; at < count; at++) bytes[at] = next() >>> 24
      return bytes
    },
    // 53 bits: 26 from one draw, 27 from the next.
    float: () => ((next() >>> 6) * 2 ** 27 + (next() >>> 5)) / 2 ** 53,
  }
}

function rotate(value: number, by: number): number {
  return (value << by) | (value >>> (32 - by))
}
