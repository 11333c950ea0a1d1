import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { createAccountLookups, type ReadAccount } from './account-lookups.ts'

const SYSTEM = '11111111111111111111111111111111'
const WAIT_MS = 300

type Call = { readonly addresses: readonly string[]; readonly withinMs: number; respond(response: unknown): void }

describe('accounts read from a node', () => {
  let clock: ManualClock
  let calls: Call[]
  let read: ReadAccount

  beforeEach(() => {
    clock = createManualClock()
    calls = []
    read = createAccountLookups({
      clock,
      callNode: (method, [addresses], withinMs) => {
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
    Promise.all(Array.from({ length: count }, (_, n) => read(`key ${from + n}`)))

  test('readings of one address share a call, and so do addresses requested in the same tick', async () => {
    const readings = [read('payer'), read('nonce'), read('payer')]
    await settle()
    assert.deepEqual(
      calls.map(({ addresses }) => addresses),
      [['payer', 'nonce']],
    )
    calls[0]?.respond({ context: { slot: 5 }, value: [account(7), null] })
    const payer = { slot: 5, account: { lamports: 7n, owner: SYSTEM, data: Buffer.of(1, 2) } }
    assert.deepEqual(await Promise.all(readings), [payer, { slot: 5, account: null }, payer])
    void read('payer')
    await settle()
    assert.equal(calls.length, 2, 'and read anew when asked to')
  })

  test('reads 100 addresses per call, four calls at once, with 1000 addresses waiting, and nothing beyond that', async () => {
    void readMany(0, 1000)
    await settle()
    assert.deepEqual(
      calls.map(({ addresses }) => addresses.length),
      [100, 100, 100, 100],
    )
    void readMany(1000, 400)
    const late = read('one too many')
    assert.equal(await late, undefined)
    calls[0]?.respond({ value: Array.from({ length: 100 }, () => null) })
    await settle()
    assert.equal(calls[4]?.addresses[0], 'key 400', 'in the order in which they came')
  })

  test('no reading takes longer than 300 ms, including the wait for a call', async () => {
    void readMany(0, 400)
    await settle()
    await clock.advanceAsync(WAIT_MS - 10)
    const reading = read('late')
    await clock.advanceAsync(10)
    assert.equal(calls.length, 5)
    assert.equal(calls[4]?.withinMs, WAIT_MS - 10)
    await clock.advanceAsync(WAIT_MS - 10)
    assert.equal(await reading, undefined)
  })

  test('treats a malformed response like no response', async () => {
    for (const response of [
      undefined,
      { value: [null, null] },
      { value: [{ lamports: -1, owner: SYSTEM, data: ['', 'base64'] }] },
      { value: [{ lamports: 1.5, owner: SYSTEM, data: ['', 'base64'] }] },
      { value: [{ lamports: '1', owner: SYSTEM, data: ['', 'base64'] }] },
      { value: [{ lamports: 1, owner: 5, data: ['', 'base64'] }] },
      { value: [{ lamports: 1, owner: SYSTEM, data: null }] },
      { value: ['account'] },
    ]) {
      const reading = read('payer')
      await settle()
      calls.at(-1)?.respond(response)
      assert.equal(await reading, undefined, JSON.stringify(response))
    }
  })
})
