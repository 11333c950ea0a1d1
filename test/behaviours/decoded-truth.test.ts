import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { createSeededRandom } from '../../src/core/random.ts'
import type { Block } from '../../src/localnet/chain/model.ts'
import { startShredSource } from '../../src/localnet/shreds/source.ts'
import { startTestChain, testKeys } from '../../src/localnet/test-chain.ts'
import { startTraffic } from '../../src/localnet/traffic/traffic.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { Engine } from '../../src/shreds/decoded/engine.ts'
import type { DataSet, DecodedEvent } from '../../src/shreds/decoded/events.ts'
import { decodeMessage, encodeEvent } from '../../src/shreds/decoded/messages.ts'
import { createRandom, isFull, seedsOf } from '../support/process/property.ts'

const SEEDS = { short: 40, full: 1000 }
const LOSSES = [0, 5, 15, 30]
const OPTIONS = { slotsMax: 128, slotsBehindMax: 64, bytesMax: 64 * 1024 * 1024, shredsPerSlotMax: 32_768 }

type Below = (below: number) => number

test(`the shreds of the embedded chain decode to the transactions of its blocks, or are reported as lost: ${isFull ? SEEDS.full : SEEDS.short} seeds, or those of SLUICE_SEEDS`, async (t) => {
  const { blocks, packets } = await produce()
  const totals = { seeds: 0, delivered: 0, lost: 0, transactions: 0 }
  for (const seed of seedsOf(t, SEEDS)) {
    const loss = LOSSES[seed % LOSSES.length] as number
    const events: DecodedEvent[] = []
    const engine = new Engine(OPTIONS, (event) => events.push(event))
    for (const packet of disturb(packets, loss, createRandom(seed))) engine.push(packet, 0, packet.length, 0, true)
    engine.end()
    for (const block of blocks) {
      const name = `slot ${block.slot}, seed ${seed}, loss ${loss} %`
      const own = events.filter(({ slot }) => slot === block.slot)
      const sets = own.filter((event): event is DataSet => event.kind === 'data-set')
      // The chain puts all entries of a block into one data set.
      if (sets.length === 0) {
        assert.ok(own.some(({ kind }) => kind === 'gap') || isLostUnnamed(block.slot, events), name)
        assert.ok(loss > 0, name)
        totals.lost += 1
        continue
      }
      assert.equal(sets.length, 1, name)
      const message = decodeMessage(
        Buffer.concat(encodeEvent(sets[0] as DataSet, () => ({ ok: true, writable: [], readonly: [] }))),
      )
      assert.ok(message.kind === 'data-set')
      assert.deepEqual(
        message.transactions.map(({ bytes }) => Buffer.from(bytes).toString('hex')),
        block.transactions.map(({ wire }) => Buffer.from(wire).toString('hex')),
        name,
      )
      totals.delivered += 1
      totals.transactions += message.transactions.length
    }
    totals.seeds += 1
  }
  t.diagnostic(JSON.stringify(totals))
  assert.ok(totals.lost > 0 && totals.transactions > 0)
})

/** A slot before the first or behind the last one of which anything arrived: nothing names it. */
function isLostUnnamed(slot: number, events: readonly DecodedEvent[]): boolean {
  const seen = events.filter(({ kind }) => kind === 'slot-report').map((event) => event.slot)
  return slot < Math.min(...seen) || slot > Math.max(...seen)
}

async function produce(): Promise<{ blocks: Block[]; packets: Uint8Array[] }> {
  await using host = await startTestChain()
  const { chain, clock } = host
  const packets: Uint8Array[] = []
  const deps = { chain, clock, log: silentLogger }
  using _source = startShredSource({ ...deps, leader: testKeys().identity, send: (packet) => packets.push(packet) })
  using traffic = startTraffic(
    { tps: 200 },
    { ...deps, random: createSeededRandom(11), secret: new Uint8Array(32).fill(1) },
  )
  await until(
    'some blocks need several FEC sets',
    () => {
      clock.advance(50)
      return traffic.landed() > 600
    },
    60_000,
  )
  await chain.produceBlock()
  clock.advance(1000)
  const blocks: Block[] = []
  for (let slot = 1; slot <= chain.slot('processed'); slot++) {
    const block = chain.block(slot)
    if (block !== undefined) blocks.push(block)
  }
  return { blocks, packets }
}

/** Loses packets, some FEC sets as good as whole; repeats some, and mixes the order. */
function disturb(packets: readonly Uint8Array[], loss: number, random: Below): Uint8Array[] {
  const arrived: { order: number; packet: Uint8Array }[] = []
  const spread = [1, 64, 256][random(3)] as number
  for (let at = 0; at < packets.length; at += 64) {
    const setLoss = loss > 0 && random(20) === 0 ? 60 : loss
    for (const packet of packets.slice(at, at + 64)) {
      if (random(100) < setLoss) continue
      for (let copies = random(10) === 0 ? 2 : 1; copies > 0; copies--)
        arrived.push({ order: arrived.length + random(spread), packet })
    }
  }
  return arrived.sort((a, b) => a.order - b.order).map(({ packet }) => packet)
}
