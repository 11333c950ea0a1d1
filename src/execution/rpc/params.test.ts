import assert from 'node:assert/strict'
import { test } from 'node:test'
import { logFilter } from './params.ts'

const topic = (digit: string) => `0x${digit.repeat(64)}`

test('an empty list of addresses or topics matches all, as null does', () => {
  const { addresses, topics } = logFilter({ address: [], topics: [[topic('a')], [], null, [topic('b'), null]] })
  assert.equal(addresses, undefined)
  assert.deepEqual(topics, [new Set([topic('a')]), undefined, undefined, undefined])
  assert.deepEqual(logFilter({ topics: [] }).topics, [])
  assert.deepEqual(logFilter({ topics: [topic('a')] }).topics, [new Set([topic('a')])])
  for (const bad of [{ topics: ['0x1'] }, { topics: [['0x1']] }, { topics: [[[]]] }, { address: ['0x1'] }])
    assert.throws(() => logFilter(bad), /Invalid params/)
})
