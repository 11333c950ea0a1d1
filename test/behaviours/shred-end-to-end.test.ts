import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'node:test'
import { parseLocalnetOptions } from '../../src/localnet/options.ts'
import { startLocalnet } from '../../src/localnet/service.ts'
import { entryBatchesOf } from '../../src/localnet/shreds/source.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { openUdpSender } from '../../src/platform/udp/sender.ts'
import type { LeaderSchedule } from '../../src/shreds/service.ts'
import { createListener } from '../../src/shreds/tools/listen.ts'
import { CLI } from '../support/cli/run.ts'
import { openSink, startRig } from '../support/shreds/rig.ts'
import { onChainCell } from '../support/solana/chain-cell.ts'

const BLOCKS = 12

test('delivers every shred of the chain once to several destinations, byte for byte, and the blocks can be rebuilt', async () => {
  using one = await openSink()
  using two = await openSink()
  await using customer = await startCustomer()
  const known: { identity?: string; changed?: () => void } = {}
  const leaders: LeaderSchedule = {
    ranges: () =>
      known.identity === undefined ? [] : [{ fromSlot: 0, toSlot: 2 ** 40, identities: [known.identity] }],
    onChange(listener) {
      known.changed = listener
      return { [Symbol.dispose]() {} }
    },
  }
  await using rig = await startRig(
    {},
    {
      leaders,
      setUp({ put }) {
        put('one', { port: one.port })
        put('two', { port: two.port })
        put('customer', { port: customer.port })
      },
    },
  )
  const sent: Buffer[] = []
  await using localnet = await startLocalnet(
    parseLocalnetOptions(
      onChainCell({
        slotMs: 100,
        rpc: { port: 0 },
        ws: { port: 0 },
        grpc: { port: 0 },
        traffic: { enabled: true, tps: 200 },
        shreds: { to: `127.0.0.1:${rig.shreds.address.port}` },
      }),
    ),
    {
      log: silentLogger,
      clock: systemClock,
      // The source sends some shreds twice, like two receivers of one cluster.
      async openUdpSender(to) {
        const sender = await openUdpSender(to)
        return {
          send(packet) {
            sent.push(Buffer.from(packet))
            sender.send(packet)
            if (sent.length % 3 === 0) sender.send(packet)
          },
          [Symbol.asyncDispose]: () => sender[Symbol.asyncDispose](),
        }
      },
    },
  )
  known.identity = localnet.chain.identity
  known.changed?.()
  await until('enough blocks were made', () => localnet.chain.slot('processed') >= BLOCKS, 30_000)
  const wanted = sent.length
  await until('they have arrived', () => [one, two].every(({ packets }) => packets.length >= wanted), 20_000)

  const { counts } = rig.shreds.status()
  assert.ok(counts.dropped.duplicate > 0)
  assert.equal(counts.dropped.forged + counts.dropped.malformed + counts.dropped.late, 0)
  for (const sink of [one, two]) {
    const got = sink.packets.map((packet) => packet.toString('hex'))
    assert.equal(new Set(got).size, got.length, 'a shred was received twice')
    const received = new Set(got)
    for (const packet of sent.slice(0, wanted)) assert.ok(received.has(packet.toString('hex')), 'a shred is missing')

    const blocks = new Map<number, Buffer>()
    const listener = createListener({
      slotMs: 100,
      leaders: leaders.ranges(),
      onBlock: (slot, batches) => void blocks.set(slot, Buffer.concat(batches)),
    })
    // Every fourth shred is lost on the way to the customer; the blocks are complete nevertheless.
    sink.packets.forEach((packet, at) => at % 4 !== 0 && listener.receive(packet, sink.times[at] as number))
    const { lines } = listener.end()
    const complete = lines.filter(({ isComplete }) => isComplete)
    assert.ok(complete.length >= BLOCKS - 1 && complete.every(({ signature }) => signature === 'good'))
    for (const { slot } of complete) {
      const block = localnet.chain.block(slot)
      assert.ok(block !== undefined)
      assert.deepEqual(blocks.get(slot), Buffer.concat(entryBatchesOf(block)), `slot ${slot}`)
    }
  }

  const lines = await customer.stop()
  const slots = lines.filter((line): line is CustomerLine => 'slot' in line)
  assert.ok(slots.length >= BLOCKS - 1, `${slots.length} slots`)
  for (const { slot, block } of slots.filter(({ is_complete }) => is_complete)) {
    const own = localnet.chain.block(slot)
    assert.ok(own !== undefined)
    assert.equal(block.sha256, hash('sha256', Buffer.concat(entryBatchesOf(own))), `slot ${slot}`)
    assert.equal(block.blockhash, own.blockhash)
    assert.equal(block.transactions, own.transactions.length)
  }
  assert.ok(slots.filter(({ is_complete }) => is_complete).length >= BLOCKS - 2)
})

type CustomerLine = {
  slot: number
  is_complete: boolean
  block: { sha256: string; blockhash: string; transactions: number }
}

/** `sluice shred listen` in a process of its own. */
async function startCustomer() {
  const child = spawn(process.execPath, [CLI, 'shred', 'listen', '0', '--host', '127.0.0.1', '--json'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, errors] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const ended = once(child, 'close')
  await until('it listens', () => /listening on UDP 127\.0\.0\.1:\d+/.test(errors) || child.exitCode !== null, 20_000)
  return {
    port: Number(/listening on UDP 127\.0\.0\.1:(\d+)/.exec(errors)?.[1]),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) child.kill('SIGKILL')
      await ended
    },
    async stop(): Promise<(CustomerLine | { totals: object })[]> {
      child.kill('SIGINT')
      await ended
      assert.equal(child.exitCode, 0, errors)
      return out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as CustomerLine | { totals: object })
    },
  }
}
