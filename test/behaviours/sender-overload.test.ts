import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isFull } from '../support/process/property.ts'
import { startLoadProcess } from '../support/sender/load-process.ts'
import { type SenderProcess, startSenderNode, startSenderProcess } from '../support/sender/process.ts'

const ADDRESSES = isFull ? 50 : 12
const SECONDS = isFull ? 30 : 2
const PER_SECOND = 4
const MANY =
  'perPayerPerSecond = 100000\nperPayerBurst = 100000\npendingPerPayerMax = 100000\npendingPerAddressMax = 100000'
const MEMORY_MS = 500
/** Share of the accepted transactions that are out within 20 ms. */
const WITHIN_SHARE = 0.95

/** Transactions dispatched within 20 ms of their request and all dispatched, from the metrics of the process. */
async function dispatched(sender: SenderProcess): Promise<{ within: number; all: number }> {
  const text = await sender.metrics()
  const read = (name: RegExp) => Number(name.exec(text)?.[1])
  return {
    within: read(/^sluice_sender_first_dispatch_seconds_bucket\{le="0.02"\} (\d+)/m),
    all: read(/^sluice_sender_first_dispatch_seconds_count (\d+)/m),
  }
}

test('at ten times the limits, accepted transactions are sent at once and the rest is refused with 429', async (t) => {
  await using node = await startSenderNode()
  await using sender = await startSenderProcess(
    node.url,
    `[sender.limits]\nperAddressPerSecond = ${PER_SECOND}\nperAddressBurst = ${PER_SECOND}\n${MANY}`,
  )
  await using load = await startLoadProcess({
    url: sender.url,
    // All of 127.0.0.0/8 is local.
    addresses: Array.from({ length: ADDRESSES }, (_, at) => `127.0.1.${at + 1}`),
    connections: 4,
    transactions: PER_SECOND * 10 * SECONDS,
    perSecond: PER_SECOND * 10,
  })
  const memory: number[] = []
  const look = setInterval(() => memory.push(sender.residentBytes()), MEMORY_MS)
  const { others, ...counts } = await load.run()
  clearInterval(look)
  const { within, all } = await dispatched(sender)
  t.diagnostic(`${JSON.stringify(counts)}; out within 20 ms: ${within} of ${all}`)
  assert.deepEqual(others, [])
  assert.equal(all, counts.taken)
  const mayBeTaken = ADDRESSES * (PER_SECOND + PER_SECOND * (counts.seconds + 1))
  assert.ok(counts.taken <= mayBeTaken, `${counts.taken} taken, at most ${mayBeTaken} allowed`)
  assert.ok(counts.taken >= ADDRESSES, 'too few transactions were accepted')
  // A machine too busy to offer ten times the limits has nothing to refuse.
  assert.ok(counts.perAddressPerSecond > 0 || counts.seconds > 4 * SECONDS)
  // The short form runs beside other tests, which share its cores. A loose bound: the load shares them here too, bench/sender.ts measures the tail.
  if (isFull) assert.ok(within >= all * WITHIN_SHARE, `${within} of ${all}`)
  const growth = (memory.at(-1) ?? 0) - (memory[Math.floor(memory.length / 2)] ?? 0)
  assert.ok(growth < 64 * 1024 * 1024, `memory grew by ${growth} bytes in the second half`)
})

test('with more signatures than the machine can check, the wait is limited and the excess refused at once', async (t) => {
  await using node = await startSenderNode()
  await using sender = await startSenderProcess(
    node.url,
    `checkThreads = 1\n[sender.limits]\ncheckDelayMsMax = 2\nperAddressPerSecond = 100000\nperAddressBurst = 100000\n${MANY}`,
  )
  await using load = await startLoadProcess({
    url: sender.url,
    addresses: ['127.0.0.1'],
    // With this many requests the wait exceeds 2 ms, whatever a check costs.
    connections: 64,
    transactions: isFull ? 40_000 : 4000,
  })
  const before = sender.residentBytes()
  const { others, ...counts } = await load.run()
  const { within, all } = await dispatched(sender)
  t.diagnostic(`${JSON.stringify(counts)}; out within 20 ms: ${within} of ${all}`)
  assert.deepEqual(others, [])
  assert.equal(all, counts.taken)
  assert.ok(counts.checkDelayMsMax > 0, 'no transaction was refused')
  assert.ok(counts.taken > 0, 'every transaction was refused')
  if (isFull) assert.ok(within >= all * WITHIN_SHARE, `${within} of ${all}`)
  const growth = sender.residentBytes() - before
  assert.ok(growth < 256 * 1024 * 1024, `memory grew by ${growth} bytes`)
})
