import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../test/support/process/property.ts'
import { createSeededRandom, type Random } from '../core/random.ts'
import { createSecretText, createToken, displayToken, hashToken, isTokenText } from './token.ts'

const VECTORS = [
  'slc_000000000000000000000000000000000JcP3N',
  'slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2',
  'slc_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz1IfYpL',
]

describe('token', () => {
  test('accepts the published test vectors', () => {
    for (const token of VECTORS) assert.equal(isTokenText(token), true, token)
  })

  test('creates tokens with a valid checksum, identified by their last four characters', () => {
    const { secret, sha256, last4 } = createToken(createSeededRandom(1))
    assert.match(secret, /^slc_[0-9A-Za-z]{38}$/)
    assert.equal(isTokenText(secret), true)
    assert.equal(sha256, createHash('sha256').update(secret, 'ascii').digest('hex'))
    assert.equal(sha256, hashToken(secret))
    assert.equal(displayToken(last4), `slc_…${secret.slice(38)}`)
  })

  test('refuses every change of one character and every swap of adjacent characters', (t) => {
    const changed = fc.property(
      fc.integer(),
      fc.nat(41),
      fc.stringMatching(/^[0-9A-Za-z_-]$/),
      (seed, at, character) => {
        const { secret } = createToken(createSeededRandom(seed))
        const substituted = secret.slice(0, at) + character + secret.slice(at + 1)
        assert.equal(isTokenText(substituted), substituted === secret)
        const swapped = secret.slice(0, at) + (secret[at + 1] ?? '') + secret[at] + secret.slice(at + 2)
        assert.equal(isTokenText(swapped), swapped === secret)
      },
    )
    checkProperty(t, changed, 2000, 200_000)
  })

  test('refuses other lengths, other prefixes and anything that is not plain ASCII', () => {
    const [token = ''] = VECTORS
    for (const text of [
      '',
      'slc_',
      token.slice(0, 41),
      `${token}0`,
      ` ${token}`,
      `${token}\n`,
      token.replace('slc_', 'SLC_'),
    ]) {
      assert.equal(isTokenText(text), false, JSON.stringify(text))
    }
    assert.equal(isTokenText(`${token.slice(0, 41)}\u0130`), false)
  })

  test('draws another byte where one would favour some characters', () => {
    const script = [255, 248, 247, 0, 61, 62]
    const random: Random = {
      bytes: (count) => Uint8Array.from({ length: count }, (_, at) => script[at % 6] ?? 0),
      float: () => 0,
    }
    // 255 and 248 are skipped; 247 % 62 is 61, the last letter.
    assert.equal(createSecretText(random, 4), 'z0z0')
  })

  test('spreads evenly over the alphabet', () => {
    const counts = new Map<string, number>()
    for (const character of createSecretText(createSeededRandom(7), 62_000))
      counts.set(character, (counts.get(character) ?? 0) + 1)
    assert.equal(counts.size, 62)
    const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0)
    // 61 degrees of freedom: 110 is passed once in ten thousand draws, and this draw is seeded.
    assert.ok(chiSquare < 110, `chi-square ${chiSquare}`)
  })
})
