import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { createSigningKey, importPublicKey, type SigningKey, signEd25519, verifyEd25519 } from './ed25519.ts'

const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'))

test('RFC 8032 test 2', () => {
  const key = createSigningKey(hex('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb'))
  assert.deepEqual(key.publicKey, hex('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c'))
  const signature = signEd25519(Uint8Array.of(0x72), key)
  assert.deepEqual(
    signature,
    hex(
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    ),
  )
  assert.equal(verifyEd25519(Uint8Array.of(0x72), signature, key.publicKey), true)
  assert.equal(verifyEd25519(Uint8Array.of(0x73), signature, key.publicKey), false)
  const handle = importPublicKey(key.publicKey)
  assert.ok(handle !== undefined)
  assert.equal(verifyEd25519(Uint8Array.of(0x72), signature, handle), true)
  assert.equal(verifyEd25519(Uint8Array.of(0x72), signature.subarray(1), handle), false)
})

test('refuses keys of small order, with and without the sign bit, canonical or not', () => {
  for (const y of pointsOfSmallOrder(2n ** 255n - 19n)) {
    for (const sign of [0, 0x80]) {
      const encoded = littleEndian(y)
      encoded[31] = (encoded[31] as number) | sign
      assert.equal(importPublicKey(encoded), undefined, y.toString(16))
      assert.equal(verifyEd25519(new Uint8Array(3), new Uint8Array(64).fill(7), encoded), false)
    }
  }
})

test('a forged signature of the System Program, whose address is a key of small order, is refused', () => {
  // With a nonce r and its point R = rB the equation sB = R + hA holds for s = r whenever hA is the neutral element, and that is so for
  // every eighth message. A secret key and its public point serve as r and R.
  const { secret, key } = secretOf(new Uint8Array(32).fill(1))
  const address = new Uint8Array(32)
  const isNeutral = (message: Uint8Array) => (number(sha512(key.publicKey, address, message)) % ORDER) % 8n === 0n
  const message = Array.from({ length: 256 }, (_, i) => Uint8Array.of(i)).find(isNeutral)
  assert.ok(message !== undefined)
  const signature = Uint8Array.of(...key.publicKey, ...littleEndian(secret % ORDER))
  assert.equal(verifyEd25519(message, signature, address), false)
})

test('refuses a signature whose nonce is the neutral element, even when made with the secret key', () => {
  const { secret, key } = secretOf(new Uint8Array(32).fill(1))
  const message = Uint8Array.of(1, 2, 3)
  const nonce = littleEndian(1n)
  const s = (number(sha512(nonce, key.publicKey, message)) * secret) % ORDER
  assert.equal(verifyEd25519(message, Uint8Array.of(...nonce, ...littleEndian(s)), key.publicKey), false)
})

test('accepts keys that begin like one of small order', () => {
  for (const first of [0x00, 0x01, 0x26, 0xc7, 0xec, 0xed, 0xee]) {
    let imported = 0
    for (let second = 0; second < 16; second++) {
      const bytes = Uint8Array.from({ length: 32 }, (_, i) => (i === 0 ? first : i === 1 ? second : 5))
      if (importPublicKey(bytes) !== undefined) imported++
    }
    assert.ok(imported > 0)
  }
})

test('refuses a key of another length', () => {
  assert.equal(importPublicKey(new Uint8Array(31).fill(7)), undefined)
  assert.equal(importPublicKey(new Uint8Array(33).fill(7)), undefined)
  assert.throws(() => createSigningKey(new Uint8Array(31)), TypeError)
})

const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n

function sha512(...parts: Uint8Array[]): Uint8Array {
  return createHash('sha512').update(Buffer.concat(parts)).digest()
}

function number(littleEndianBytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(littleEndianBytes).reverse().toString('hex')}`)
}

/** The scalar behind a seed (RFC 8032, 5.1.5). */
function secretOf(seed: Uint8Array): { secret: bigint; key: SigningKey } {
  const secret = (number(sha512(seed).subarray(0, 32)) & ~(2n ** 255n) & ~7n) | (2n ** 254n)
  return { secret, key: createSigningKey(seed) }
}

/** The y of all points P with 8P = 0 on edwards25519, found by arithmetic, with the non-canonical encodings below 2^255. */
function pointsOfSmallOrder(p: bigint): bigint[] {
  const mod = (a: bigint) => ((a % p) + p) % p
  const power = (base: bigint, exponent: bigint): bigint => {
    let result = 1n
    for (let b = mod(base), e = exponent; e > 0n; e >>= 1n, b = mod(b * b)) if (e & 1n) result = mod(result * b)
    return result
  }
  const inverse = (a: bigint) => power(a, p - 2n)
  const d = mod(-121665n * inverse(121666n))
  // Orders 1, 2 and 4 have y of 1, -1 and 0. A point of order 8 doubles to y = 0, that is y^2 = -x^2, which on the curve
  // -x^2 + y^2 = 1 + d x^2 y^2 leaves d y^4 + 2 y^2 - 1 = 0.
  const root = squareRoot(mod(1n + d), p, power)
  const squares = [root, mod(-root)].map((r) => mod((r - 1n) * inverse(d)))
  const ys = squares.flatMap((square) => {
    const y = squareRoot(square, p, power)
    return mod(y * y) === square ? [y, mod(-y)] : []
  })
  assert.equal(ys.length, 2)
  return [0n, 1n, p - 1n, p, p + 1n, ...ys]
}

function squareRoot(a: bigint, p: bigint, power: (base: bigint, exponent: bigint) => bigint): bigint {
  const candidate = power(a, (p + 3n) / 8n)
  return (candidate * candidate) % p === a ? candidate : (candidate * power(2n, (p - 1n) / 4n)) % p
}

function littleEndian(value: bigint): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => Number((value >> BigInt(8 * i)) & 0xffn))
}
