import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeState } from '../../contract/node-states.ts'
import { createSeededRandom } from '../../core/random.ts'
import { createProcessConditions, type Observed } from './conditions.ts'
import { Outbox } from './outbox.ts'

const NODE_DOWN_S = 60
const SILENT_S = 300
const OPTIONS = { nodeDownSeconds: NODE_DOWN_S, destinationSilentSeconds: SILENT_S, certificateDays: 0, backupDays: 0 }

type Seen = {
  readonly node?: NodeState
  readonly slot?: number
  readonly state?: string
  readonly packets?: number
  readonly hasShreds?: boolean
}

/** One process after another with the same file. */
function openProcesses() {
  const random = createSeededRandom(1)
  let disk: string | undefined
  const file = { read: async () => disk, write: async (text: string) => void (disk = text) }
  /** Starts a process that sees this every 15 s, and returns the kinds of its notices. */
  return async (untilS: number, seenAt: (second: number) => Seen): Promise<string[]> => {
    const deps = { file, random, nowMs: 0, onDamaged: assert.fail }
    const outbox = await Outbox.open({ receiversOf: () => ['ops'] }, deps)
    const conditions = createProcessConditions(OPTIONS, (id) => id)
    const kinds: string[] = []
    for (let second = 15; second <= untilS; second += 15) {
      const { node, slot = 9, state = 'sending', packets, hasShreds = true } = seenAt(second)
      const observed: Observed = {
        nodes: node === undefined ? [] : [{ name: 'fra-1', state: node, reason: '', slot }],
        destinations: packets === undefined ? [] : [{ subscriptionId: 'sub_1', state, packets, lastFault: null }],
        ...{ hasShreds, certificates: new Map(), backupAtMs: 0 },
      }
      const made = await outbox.observe(conditions(observed, second * 1000, second * 1000), second * 1000)
      kinds.push(...made.map(({ kind }) => `${kind} ${second}`))
    }
    return kinds
  }
}

test('a node that stays down over a restart causes one notice, and another one after it was healthy', async () => {
  const run = openProcesses()
  const down = (): Seen => ({ node: 'failing' })
  assert.deepEqual(await run(120, down), ['node.down 75'])
  assert.deepEqual(await run(30, down), [], 'a process that ends before the node counts as down')
  assert.deepEqual(await run(120, down), [])
  const late = (second: number): Seen => (second < 45 ? { node: 'healthy', slot: 0 } : down())
  assert.deepEqual(await run(180, late), [], 'a node that has not responded yet is not healthy')
  assert.deepEqual(await run(30, (second) => ({ node: second === 15 ? 'failing' : 'healthy' })), [])
  assert.deepEqual(await run(120, down), ['node.down 75'])
  assert.deepEqual(await run(150, (second) => ({ node: second < 30 ? 'healthy' : 'lagging' })), ['node.down 90'])
  assert.deepEqual(await run(15, () => ({})), [], 'the node was removed')
  assert.deepEqual(await run(120, down), ['node.down 75'])
})

test('a destination that stays silent over a restart causes one notice, and another one after it was sent shreds', async () => {
  const run = openProcesses()
  const silent = () => ({ packets: 0 })
  assert.deepEqual(await run(330, silent), ['shreds.destination-silent 315'])
  assert.deepEqual(await run(30, silent), [])
  assert.deepEqual(await run(600, silent), [])
  assert.deepEqual(await run(30, () => ({ packets: 0, hasShreds: false })), [], 'not known: no shreds arrive')
  assert.deepEqual(await run(600, silent), [])
  assert.deepEqual(await run(30, () => ({ packets: 7 })), [], 'sent since the start')
  assert.deepEqual(await run(330, silent), ['shreds.destination-silent 315'])
  assert.deepEqual(await run(330, () => ({ packets: 0, hasShreds: false })), [], 'not known for longer than its time')
  assert.deepEqual(await run(330, silent), ['shreds.destination-silent 315'])
})

test('a destination that refuses its packets over a restart causes one notice', async () => {
  const run = openProcesses()
  const refusing = (second: number) => ({ state: 'paused', packets: 3 + second / 15 })
  assert.deepEqual(await run(330, refusing), ['shreds.destination-silent 315'])
  assert.deepEqual(await run(30, refusing), [])
  assert.deepEqual(await run(600, refusing), [])
})
