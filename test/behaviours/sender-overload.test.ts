import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isFull } from '../support/property.ts'
import { tipped, walletOf } from '../support/sender.ts'
import { type LoadAnswer, openSenderLoad, sendTransactionBody } from '../support/sender-load.ts'
import { NODE_BLOCKHASH } from '../support/sender-node.ts'
import { type SenderProcess, startSenderNode, startSenderProcess } from '../support/sender-process.ts'

const ADDRESSES = isFull ? 50 : 12
const SECONDS = isFull ? 30 : 2
const PER_SECOND = 4
const MANY = 'perPayerPerSecond = 100000\nperPayerBurst = 100000'

type Counts = { taken: number; perAddressPerSecond: number; checkDelayMsMax: number; other: number }

/** A yes, or a proper 429 that names its limit; anything else is printed. */
function count(counts: Counts, { status, head, body }: LoadAnswer, say: (text: string) => void): void {
  const limit = /"code":-32429,.*"limit":"(perAddressPerSecond|checkDelayMsMax)"/.exec(body)?.[1]
  if (status === 200 && body.includes('"result"')) counts.taken += 1
  else if (status === 429 && limit !== undefined && /\r\nretry-after: \d+/i.test(head)) {
    counts[limit as 'perAddressPerSecond' | 'checkDelayMsMax'] += 1
  } else {
    counts.other += 1
    say(`${status} ${body}`)
  }
}

const newCounts = (): Counts => ({ taken: 0, perAddressPerSecond: 0, checkDelayMsMax: 0, other: 0 })

/** How many were handed to the paths within 20 ms of the end of their request, of how many, as the process itself counts them. */
async function dispatched(sender: SenderProcess): Promise<{ within: number; all: number }> {
  const text = await sender.metrics()
  const read = (name: RegExp) => Number(name.exec(text)?.[1])
  return {
    within: read(/^sluice_sender_first_dispatch_seconds_bucket\{le="0.02"\} (\d+)/m),
    all: read(/^sluice_sender_first_dispatch_seconds_count (\d+)/m),
  }
}

test('ten times the limits from many addresses: what is taken goes out at once, the rest is a proper 429', async (t) => {
  await using node = await startSenderNode()
  await using sender = await startSenderProcess(
    node.url,
    `[sender.limits]\nperAddressPerSecond = ${PER_SECOND}\nperAddressBurst = ${PER_SECOND}\n${MANY}`,
  )
  const perClient = PER_SECOND * 10 * SECONDS
  // Signed before it begins, so that the machine is left to the sender.
  const bodies = Array.from({ length: ADDRESSES }, (_, at) =>
    Array.from({ length: perClient }, (_, n) =>
      sendTransactionBody(tipped(walletOf(at), NODE_BLOCKHASH, `${at} ${n}`)),
    ),
  )
  using loads = new DisposableStack()
  // All of 127/8 is this machine.
  const clients = await Promise.all(
    bodies.map(async (own, at) => ({ own, load: loads.use(await openSenderLoad(sender.url, 4, `127.0.1.${at + 1}`)) })),
  )
  const counts = newCounts()
  const memory: number[] = []
  const startedMs = performance.now()
  await Promise.all(
    clients.map(async ({ own, load }, at) => {
      const answers: Promise<void>[] = []
      for (const [n, body] of own.entries()) {
        const waitMs = startedMs + (n * 1000) / (PER_SECOND * 10) - performance.now()
        if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
        answers.push(load.post(body).then((answer) => count(counts, answer, (text) => t.diagnostic(text))))
        if (at === 0 && n % 20 === 0) memory.push(sender.residentBytes())
      }
      await Promise.all(answers)
    }),
  )
  const tookSeconds = (performance.now() - startedMs) / 1000
  const { within, all } = await dispatched(sender)
  t.diagnostic(`${JSON.stringify(counts)} in ${tookSeconds.toFixed(1)} s; out within 20 ms: ${within} of ${all}`)
  assert.deepEqual([counts.other, all], [0, counts.taken])
  const mayBeTaken = ADDRESSES * (PER_SECOND + PER_SECOND * (tookSeconds + 1))
  assert.ok(counts.taken <= mayBeTaken, `${counts.taken} taken, at most ${mayBeTaken} allowed`)
  assert.ok(counts.taken >= ADDRESSES, 'the limits let nothing through')
  // A machine too busy to offer ten times the limits has nothing to refuse.
  assert.ok(counts.perAddressPerSecond > 0 || tookSeconds > 4 * SECONDS)
  // The short form runs beside other tests, which share its cores.
  if (isFull) assert.ok(within >= all * 0.99)
  const growth = (memory.at(-1) ?? 0) - (memory[Math.floor(memory.length / 2)] ?? 0)
  assert.ok(growth < 64 * 1024 * 1024, `memory grew by ${growth} bytes in the second half`)
})

test('more than the machine can check: the wait for a check is bounded, and who would wait longer is told so at once', async (t) => {
  await using node = await startSenderNode()
  await using sender = await startSenderProcess(
    node.url,
    `checkThreads = 1\n[sender.limits]\ncheckDelayMsMax = 2\nperAddressPerSecond = 100000\nperAddressBurst = 100000\n${MANY}`,
  )
  // With so many at once a wait of 2 ms is exceeded by whatever a check costs.
  const connections = 64
  const bodies = Array.from({ length: isFull ? 40_000 : 4000 }, (_, n) =>
    sendTransactionBody(tipped(walletOf(n % 64), NODE_BLOCKHASH, `flood ${n}`)),
  )
  using load = await openSenderLoad(sender.url, connections)
  const counts = newCounts()
  const left = bodies.values()
  const before = sender.residentBytes()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      for (const body of left) count(counts, await load.post(body), (text) => t.diagnostic(text))
    }),
  )
  const { within, all } = await dispatched(sender)
  t.diagnostic(`${JSON.stringify(counts)}; out within 20 ms: ${within} of ${all}`)
  assert.deepEqual([counts.other, all], [0, counts.taken])
  assert.ok(counts.checkDelayMsMax > 0, 'nobody was turned away')
  assert.ok(counts.taken > 0, 'everybody was turned away')
  if (isFull) assert.ok(within >= all * 0.99)
  const growth = sender.residentBytes() - before
  assert.ok(growth < 256 * 1024 * 1024, `memory grew by ${growth} bytes`)
})
