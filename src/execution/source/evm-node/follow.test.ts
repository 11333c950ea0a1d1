import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createManualClock } from '../../../core/clock.ts'
import { createSeededRandom } from '../../../core/random.ts'
import { idOf } from '../../../evm/test-block.ts'
import type { BlockHead, NodeBlock } from './client.ts'
import { FOLLOW_DEFAULTS, followNode } from './follow.ts'

const POLL_MS = 1000

/** A node whose chain, safe and finalized block the test sets, and what was recorded of it. */
function createRig() {
  const clock = createManualClock()
  let chain: BlockHead[] = []
  const node = { safe: -1, finalized: -1 }
  const recorded: string[] = []
  const at = (number: number): (BlockHead & NodeBlock) | undefined => {
    const head = chain[number]
    return head && { ...head, block: {}, txns: [] }
  }
  const following = followNode(FOLLOW_DEFAULTS, {
    clock,
    random: createSeededRandom(1),
    client: {
      head: async () => chain.length - 1,
      headOf: async (block) => at(typeof block === 'number' ? block : node[block]),
      block: async (number) => at(number),
    },
    sink: {
      block() {},
      voted: ({ number, hash }) => void recorded.push(`voted ${number} ${forkOf(hash)}`),
      finalized: ({ number, hash }) => void recorded.push(`finalized ${number} ${forkOf(hash)}`),
      skipped: (from, to) => void recorded.push(`skipped ${from} ${to}`),
      failure: (message) => assert.equal(message, undefined),
    },
  })
  return {
    node,
    recorded,
    /** The chain has these blocks from a number on, up to its new head. */
    extend(from: number, to: number, fork = 0) {
      chain = chain.slice(0, from)
      for (let number = chain.length; number <= to; number++) {
        const parentHash = chain.at(-1)?.hash ?? idOf(0, 0xff)
        chain.push({ number, hash: idOf(number, number < from ? 0 : fork), parentHash })
      }
    },
    /** The node responds in microtasks, all of which run before the next turn of the event loop. */
    async poll() {
      clock.advance(POLL_MS)
      await setImmediate()
    },
    stages: (name: string) => recorded.filter((line) => line.startsWith(name)),
    [Symbol.asyncDispose]: () => following[Symbol.asyncDispose](),
  }
}

const forkOf = (hash: string): number => Number.parseInt(hash.slice(2, 34), 16)

describe('blocks of an EVM node', () => {
  test('become final however far the finalized block is behind the head, each once and in order', async () => {
    await using rig = createRig()
    rig.extend(0, 0)
    await rig.poll()
    for (let head = 50; head <= 600; head += 50) {
      rig.extend(head - 49, head)
      await rig.poll()
    }
    rig.node.safe = 20
    rig.node.finalized = 10
    await rig.poll()
    rig.node.safe = 300
    rig.node.finalized = 200
    await rig.poll()
    await rig.poll()
    const numbered = (name: string, to: number) => Array.from({ length: to + 1 }, (_, at) => `${name} ${at} 0`)
    assert.deepEqual(rig.stages('finalized'), numbered('finalized', 200))
    assert.deepEqual(rig.stages('voted'), numbered('voted', 300))
  })

  test('of an abandoned branch do not become final', async () => {
    await using rig = createRig()
    rig.extend(0, 0)
    await rig.poll()
    rig.extend(1, 40)
    await rig.poll()
    rig.extend(30, 50, 7)
    await rig.poll()
    rig.node.finalized = 45
    await rig.poll()
    assert.equal(rig.stages('finalized').length, 46)
    assert.deepEqual(rig.stages('finalized').slice(29, 32), ['finalized 29 0', 'finalized 30 7', 'finalized 31 7'])
  })

  test('before skipped ones become final only by a finalized block of theirs', async () => {
    await using rig = createRig()
    rig.extend(0, 0)
    await rig.poll()
    rig.extend(1, 40)
    await rig.poll()
    rig.extend(41, 200)
    await rig.poll()
    assert.deepEqual(rig.stages('skipped'), ['skipped 41 199'])
    rig.node.finalized = 30
    await rig.poll()
    assert.equal(rig.stages('finalized').at(-1), 'finalized 30 0')
    rig.node.finalized = 200
    await rig.poll()
    // Blocks 31 to 40 may have been abandoned meanwhile.
    assert.deepEqual(rig.stages('finalized').slice(30), ['finalized 30 0', 'finalized 200 0'])
  })
})
