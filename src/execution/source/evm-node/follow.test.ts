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
  /** `behind`: so many blocks are missing at the node that responds; `missing`: a block that this one reports as its head but does not have. */
  const node = { safe: -1, finalized: -1, behind: 0, missing: -1 }
  const recorded: string[] = []
  const at = (number: number): (BlockHead & NodeBlock) | undefined => {
    const head = number > newest() || number === node.missing ? undefined : chain[number]
    return head && { ...head, block: {}, txns: [] }
  }
  const newest = () => chain.length - 1 - node.behind
  const following = followNode(FOLLOW_DEFAULTS, {
    clock,
    random: createSeededRandom(1),
    client: {
      head: async () => newest(),
      headOf: async (block) => at(typeof block === 'number' ? block : node[block]),
      block: async (number) => at(number),
    },
    sink: {
      block: ({ number, hash }: NodeBlock & BlockHead) => void recorded.push(`block ${number} ${forkOf(hash)}`),
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
    head: () => chain.length - 1,
    stages: (name: string) => recorded.filter((line) => line.startsWith(name)),
    [Symbol.asyncDispose]: () => following[Symbol.asyncDispose](),
  }
}

const forkOf = (hash: string): number => Number.parseInt(hash.slice(2, 34), 16)

const lines = (name: string, from: number, to: number, fork = 0) =>
  Array.from({ length: to - from + 1 }, (_, at) => `${name} ${from + at} ${fork}`)

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
    assert.deepEqual(rig.stages('finalized'), lines('finalized', 0, 200))
    assert.deepEqual(rig.stages('voted'), lines('voted', 0, 300))
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

  test('are recorded once where some nodes behind its URL are behind the others', async () => {
    await using rig = createRig()
    rig.extend(0, 0)
    await rig.poll()
    for (const head of [100, 101, 102, 100, 103, 50, 102, 104]) {
      const newest = Math.max(head, rig.head())
      rig.extend(rig.head() + 1, newest)
      rig.node.behind = newest - head
      await rig.poll()
    }
    rig.node.behind = 0
    rig.node.missing = rig.head()
    await rig.poll()
    rig.extend(105, 105)
    await rig.poll()
    assert.deepEqual(rig.stages('block'), [...lines('block', 0, 0), ...lines('block', 100, 105)])
  })

  test('of a new branch that is shorter are recorded from the fork on', async () => {
    await using rig = createRig()
    rig.extend(0, 0)
    await rig.poll()
    rig.extend(1, 40)
    await rig.poll()
    rig.extend(30, 35, 7)
    await rig.poll()
    rig.extend(36, 45, 7)
    await rig.poll()
    assert.deepEqual(rig.stages('block'), [...lines('block', 0, 40), ...lines('block', 30, 45, 7)])
  })

  test('that the node removed from its end are replaced once there are others', async () => {
    await using rig = createRig()
    rig.extend(0, 0)
    await rig.poll()
    rig.extend(1, 40)
    await rig.poll()
    rig.extend(30, 29)
    await rig.poll()
    assert.equal(rig.stages('block').length, 41)
    rig.extend(30, 30, 7)
    await rig.poll()
    assert.deepEqual(rig.stages('block').slice(41), lines('block', 30, 30, 7))
  })

  test('of another chain that begins below the recorded ones are recorded from the first number that was recorded', async () => {
    await using rig = createRig()
    rig.extend(0, 500)
    await rig.poll()
    rig.extend(0, 499, 7)
    await rig.poll()
    rig.extend(500, 502, 7)
    await rig.poll()
    assert.deepEqual(rig.stages('block'), [...lines('block', 500, 500), ...lines('block', 500, 502, 7)])
  })
})
