import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { type ChainIdentityDeps, findOtherChain } from './chain-identity.ts'

const MAINNET = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d'
const TESTNET = '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY'
const FILLED = { areEmpty: false }

/** A node that responds with each of these in turn, and with the last one from then on; undefined: no node is available. */
function nodes(...results: unknown[]): ChainIdentityDeps['upstream'] {
  return {
    forwardAsync() {
      const result = results.length > 1 ? results.shift() : results[0]
      if (result === undefined) return Promise.resolve({ kind: 'no-upstream' } as never)
      return Promise.resolve({ kind: 'responded', body: Buffer.from(JSON.stringify({ result })) } as never)
    },
  }
}

test('the chain of the tables is the one of their first start, and another chain is reported', async () => {
  using folder = makeTestFolder()
  const file = join(folder.path, 'genesis')
  const find = (genesis: string, tables = FILLED) =>
    findOtherChain(file, tables, depsOf(nodes(genesis)).deps, new AbortController().signal)
  assert.equal(await find(MAINNET), undefined, 'tables without the file take the chain of the nodes')
  assert.equal(readFileSync(file, 'utf8'), `${MAINNET}\n`)
  assert.equal(await find(MAINNET), undefined)
  assert.deepEqual(await find(TESTNET), { stored: MAINNET, found: TESTNET })
  assert.equal(readFileSync(file, 'utf8'), `${MAINNET}\n`)
  assert.equal(await find(TESTNET, { areEmpty: true }), undefined, 'empty tables take the chain of the nodes')
  assert.equal(readFileSync(file, 'utf8'), `${TESTNET}\n`)
  writeFileSync(file, '')
  assert.equal(await find(MAINNET), undefined, 'a damaged file is written again')
})

test('it waits until a node responds with a genesis hash, or until it is closed', async () => {
  using folder = makeTestFolder()
  const file = join(folder.path, 'genesis')
  const { deps, clock } = depsOf(nodes(undefined, 7, MAINNET))
  const closing = new AbortController()
  const found = findOtherChain(file, FILLED, deps, closing.signal)
  for (let attempts = 0; attempts < 20 && !existsSync(file); attempts++) {
    clock.advance(10_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(await found, undefined)
  assert.ok(existsSync(file))
  assert.deepEqual(getEventListeners(closing.signal, 'abort'), [], 'a wait that is over leaves nothing behind')
  const never = findOtherChain(file, FILLED, depsOf(nodes(undefined)).deps, closing.signal)
  closing.abort()
  assert.equal(await never, undefined)
})

function depsOf(upstream: ChainIdentityDeps['upstream']) {
  const clock = createManualClock()
  return { clock, deps: { upstream, clock, random: createSeededRandom(1) } }
}
