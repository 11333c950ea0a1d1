import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findPoolFaults, type NodeCheck } from './check-node.ts'
import { parseUpstreamsOptions } from './options.ts'

const check = (name: string, slot: number, slotMs: number | undefined): NodeCheck => ({
  name,
  slot,
  slotMs,
  servers: [],
  version: '4.2.1',
  genesis: 'g',
})

test('a node is behind by time: the length of a slot is that of the statistics of the nodes', () => {
  const { health } = parseUpstreamsOptions()
  const messages = (slotMs: number | undefined, slots: number) =>
    findPoolFaults([check('a', 1000 + slots, slotMs), check('b', 1000, slotMs)], health).map(({ message }) => message)
  assert.deepEqual([messages(undefined, 25), messages(undefined, 26)], [[], ['b is 26 slots behind the best']])
  assert.deepEqual([messages(200, 50), messages(200, 51)], [[], ['b is 51 slots behind the best']])
  const one = [check('a', 1040, 200), check('b', 1000, undefined)]
  assert.deepEqual(findPoolFaults(one, health), [], 'one of the nodes has statistics')
})
