import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { createManualClock, type ManualClock } from '../core/clock.ts'
import { type AccountLookups, createAccountLookups } from './account-lookups.ts'

const SYSTEM = '11111111111111111111111111111111'
const WAIT_MS = 300
const KNOWN_MAX = 16_384

type Call = { readonly addresses: readonly string[]; readonly withinMs: number; respond(response: unknown): void }

describe('accounts read from a node', () => {
  let clock: ManualClock
  let calls: Call[]
  let lookups: AccountLookups

  beforeEach(() => {
    clock = createManualClock()
    calls = []
    lookups = createAccountLookups({
      clock,
      ask: (method, [addresses], withinMs) => {
        assert.equal(method, 'getMultipleAccounts')
        const { promise, resolve } = Promise.withResolvers<unknown>()
        clock.setTimer(withinMs, () => resolve(undefined))
        calls.push({ addresses: addresses as string[], withinMs, respond: resolve })
        return promise
      },
    })
  })

  const account = (lamports: number) => ({ lamports, owner: SYSTEM, data: ['AQI=', 'base64'] })
  const settle = () => clock.advanceAsync(0)
  const readMany = (from: number, count: number) =>
    Promise.all(Array.from({ length: count }, (_, n) => lookups.read(`key ${from + n}`)))

  test('two readings of one address share a call, and addresses of one turn share one too', async () => {
    const readings = [lookups.read('payer'), lookups.read('nonce'), lookups.read('payer')]
    await settle()
    assert.deepEqual(
      calls.map(({ addresses }) => addresses),
      [['payer', 'nonce']],
    )
    calls[0]?.respond({ value: [account(7), null] })
    const payer = { lamports: 7n, owner: SYSTEM, data: Buffer.of(1, 2) }
    assert.deepEqual(await Promise.all(readings), [payer, null, payer])
    assert.deepEqual(lookups.known('payer'), { account: payer, readMs: 0, triedMs: 0 })
    assert.deepEqual(lookups.known('nonce'), { account: null, readMs: 0, triedMs: 0 })
    void lookups.read('payer')
    await settle()
    assert.equal(calls.length, 2, 'and read anew when asked to')
  })

  test('100 addresses in a call, four calls at once, 1000 addresses waiting: beyond that there is no reading', async () => {
    void readMany(0, 1000)
    await settle()
    assert.deepEqual(
      calls.map(({ addresses }) => addresses.length),
      [100, 100, 100, 100],
    )
    void readMany(1000, 400)
    const late = lookups.read('one too many')
    assert.equal(await late, undefined)
    calls[0]?.respond({ value: Array.from({ length: 100 }, () => null) })
    await settle()
    assert.equal(calls[4]?.addresses[0], 'key 400', 'in the order in which they came')
  })

  test('no reading takes longer than 300 ms, the wait for a call included', async () => {
    void readMany(0, 400)
    await settle()
    await clock.advanceAsync(WAIT_MS - 10)
    const reading = lookups.read('late')
    await clock.advanceAsync(10)
    assert.equal(calls.length, 5)
    assert.equal(calls[4]?.withinMs, WAIT_MS - 10)
    await clock.advanceAsync(WAIT_MS - 10)
    assert.equal(await reading, undefined)
    assert.deepEqual(lookups.known('late'), { account: undefined, readMs: 0, triedMs: 590 })
  })

  test('a response that is none is no reading, and what was read before stays', async () => {
    for (const [at, response] of [
      undefined,
      { value: [null, null] },
      { value: [{ lamports: -1, owner: SYSTEM, data: ['', 'base64'] }] },
      { value: [{ lamports: 1.5, owner: SYSTEM, data: ['', 'base64'] }] },
      { value: [{ lamports: 1, owner: 5, data: ['', 'base64'] }] },
      { value: [{ lamports: 1, owner: SYSTEM, data: null }] },
      { value: ['account'] },
    ].entries()) {
      const first = lookups.read('payer')
      await settle()
      calls.at(-1)?.respond({ value: [account(at)] })
      await first
      const readMs = clock.monotonicMs()
      await clock.advanceAsync(50)
      const second = lookups.read('payer')
      await settle()
      calls.at(-1)?.respond(response)
      assert.equal(await second, undefined, JSON.stringify(response))
      const { account: kept, ...times } = lookups.known('payer') ?? {}
      assert.deepEqual([kept?.lamports, times], [BigInt(at), { readMs, triedMs: readMs + 50 }])
    }
  })

  test('addresses without an account displace one another, not the accounts that exist', async () => {
    const read = async (addresses: readonly string[], value: unknown) => {
      for (let at = 0; at < addresses.length; at += 100) {
        const part = addresses.slice(at, at + 100)
        const readings = part.map((address) => lookups.read(address))
        await settle()
        calls.at(-1)?.respond({ value: part.map(() => value) })
        await Promise.all(readings)
      }
    }
    const named = (name: string) => Array.from({ length: KNOWN_MAX }, (_, n) => `${name} ${n}`)
    await read(['payer', 'other'], account(5))
    await read(['missing'], null)
    await read(named('made up'), null)
    assert.deepEqual([lookups.known('payer')?.account?.lamports, lookups.known('missing')], [5n, undefined])
    await read(named('funded').slice(1), account(1))
    assert.deepEqual(
      [lookups.known('payer')?.account?.lamports, lookups.known('other')],
      [5n, undefined],
      'the one used last stays',
    )
  })
})
