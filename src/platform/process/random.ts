import { randomBytes } from 'node:crypto'
import type { Random } from '../../core/random.ts'

/** Randomness of the operating system, fit for secrets. */
export const secureRandom: Random = {
  bytes: (count) => randomBytes(count),
  float() {
    const bytes = randomBytes(8)
    // 53 bits, the full precision of a double in [0, 1).
    return ((bytes.readUInt32BE(0) >>> 6) * 2 ** 27 + (bytes.readUInt32BE(4) >>> 5)) / 2 ** 53
  },
}
