import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isServiceError } from '../../core/error.ts'
import { createSeededRandom } from '../../core/random.ts'
import { type Sealed, seal, unseal } from './sealed.ts'

const SECRET = Buffer.from('correct horse battery staple')
/** Fast; the default is for real secrets. */
const CHEAP = { random: createSeededRandom(1), cost: { n: 1024, r: 8, p: 1 } }

test('opens with the secret it was sealed with, and with no other', async () => {
  const sealed = await seal('{"tip":1} ü', SECRET, { random: createSeededRandom(1) })
  assert.equal(128 * sealed.n * sealed.r, 128 * 2 ** 20, 'a guess costs 128 MiB')
  assert.ok(!JSON.stringify(sealed).includes('tip'))
  assert.equal(await unseal(JSON.parse(JSON.stringify(sealed)), SECRET), '{"tip":1} ü')
  assert.equal(await unseal(sealed, Buffer.from('correct horse battery stapl')), undefined)
})

test('two seals of one text have nothing in common', async () => {
  const [one, other] = [await seal('text', SECRET, CHEAP), await seal('text', SECRET, CHEAP)]
  for (const field of ['salt', 'nonce', 'tag', 'data'] as const) assert.notEqual(one[field], other[field], field)
})

test('a changed byte of any field is refused', async () => {
  const sealed = await seal('text', SECRET, CHEAP)
  for (const field of ['salt', 'nonce', 'tag', 'data'] as const) {
    const bytes = Buffer.from(sealed[field], 'base64')
    bytes[0] = (bytes[0] as number) ^ 1
    assert.equal(await unseal({ ...sealed, [field]: bytes.toString('base64') }, SECRET), undefined, field)
  }
  assert.equal(await unseal({ ...sealed, n: 2048 }, SECRET), undefined)
  for (const tag of ['', sealed.tag.slice(0, 8)])
    await assert.rejects(unseal({ ...sealed, tag }, SECRET), (error) => isServiceError(error, 'store-corrupt'), tag)
})

test('a seal from elsewhere cannot ask for more memory or work than the limit', async () => {
  const sealed = await seal('text', SECRET, CHEAP)
  const wrong: Partial<Record<keyof Sealed, unknown>>[] = [
    { n: 2 ** 24 },
    { n: 1000 },
    { n: 1 },
    { r: 2 ** 20 },
    { p: 5 },
    { n: '1024' },
    { data: 5 },
  ]
  for (const change of wrong)
    await assert.rejects(
      unseal({ ...sealed, ...change }, SECRET),
      (error) => isServiceError(error, 'store-corrupt'),
      JSON.stringify(change),
    )
  for (const change of [{ v: 2 }, { kdf: 'argon2id' }, { cipher: 'other' }])
    await assert.rejects(unseal({ ...sealed, ...change }, SECRET), (error) => isServiceError(error, 'store-newer'))
})
