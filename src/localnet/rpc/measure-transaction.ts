/**
 * The length of the transaction at the start of `wire`, or the message of Agave's deserializer (bincode) where there is none. Agave
 * checks the structure first and allows trailing bytes; counts and indexes are validated later.
 */
export type Measured = { readonly ok: true; readonly length: number } | { readonly ok: false; readonly fault: string }

const VERSION_BIT = 0x80
const SIGNATURE_BYTES = 64
const KEY_BYTES = 32

export function measureTransaction(wire: Uint8Array): Measured {
  return measure(wire, (walk) => {
    walk.skip(walk.length() * SIGNATURE_BYTES)
    walkMessage(walk)
  })
}

export function measureMessage(wire: Uint8Array): Measured {
  return measure(wire, walkMessage)
}

function measure(wire: Uint8Array, run: (walk: Walk) => void): Measured {
  const walk = new Walk(wire)
  try {
    run(walk)
    return { ok: true, length: walk.at }
  } catch (error) {
    if (error instanceof WalkError) return { ok: false, fault: error.message }
    throw error
  }
}

function walkMessage(walk: Walk): void {
  const first = walk.byte()
  const version = first >= VERSION_BIT ? first - VERSION_BIT : undefined
  if (version === 127) throw new WalkError('off-chain messages are not accepted')
  if (version !== undefined && version !== 0) {
    throw new WalkError(`invalid value: integer \`${version}\`, expected a valid transaction message version`)
  }
  walk.skip(version === undefined ? 2 : 3)
  walk.skip(walk.length() * KEY_BYTES)
  walk.skip(KEY_BYTES)
  for (let left = walk.length(); left > 0; left--) {
    walk.skip(1)
    walk.skip(walk.length())
    walk.skip(walk.length())
  }
  if (version === undefined) return
  for (let left = walk.length(); left > 0; left--) {
    walk.skip(KEY_BYTES)
    walk.skip(walk.length())
    walk.skip(walk.length())
  }
}

class WalkError extends Error {
  override readonly name = 'WalkError'
}

class Walk {
  at = 0
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  skip(length: number): void {
    if (this.at + length > this.#bytes.length) throw new WalkError('io error: failed to fill whole buffer')
    this.at += length
  }

  byte(): number {
    this.skip(1)
    return this.#bytes[this.at - 1] as number
  }

  /** A "short vec" length: up to three bytes of seven bits, in the shortest form. */
  length(): number {
    let value = 0
    for (let index = 0; index < 3; index++) {
      const byte = this.byte()
      if (byte === 0 && index > 0) throw new WalkError('invalid value: alias encoding, expected strict form encoding')
      value |= (byte & 0x7f) << (7 * index)
      if (byte < 0x80) {
        if (value > 0xffff)
          throw new WalkError(`invalid value: integer \`${value}\`, expected a value in the range [0, 65535]`)
        return value
      }
    }
    throw new WalkError(
      'invalid value: continue signal on byte-three, expected a terminal signal on or before byte-three',
    )
  }
}
