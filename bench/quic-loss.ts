import { createSeededRandom } from '../src/core/random.ts'
import { windowBytesFor } from '../src/sender/dispatch/quic-path.ts'
import { simulate } from '../test/support/sender/quic-simulation.ts'

/**
 * What loss on the way to a leader costs the sender: transactions over one QUIC connection on a simulated network, on a clock of its own, so that the
 * figures are those of the protocol and the same on every machine. Loss is that of each direction, and the way varies by 1 ms. One JSON line for each case:
 * the time from `send` until the leader has the whole transaction, less the way there; with the window of the sender, and with one that each loss halves down
 * to two datagrams (RFC 9002).
 *   node bench/quic-loss.ts [transactions of a case, 3000 by default] [seed, 1]
 */
const [countText = '3000', seedText = '1'] = process.argv.slice(2)
const TRANSACTIONS = Number(countText)
/** A swap with several accounts: each fills most of a datagram. */
const BYTES = 700
const JITTER_MS = 1
const STEP_MS = 0.5
const WINDOW_BYTES = windowBytesFor({ perLeaderPerSecond: 180 })
const WINDOWS = { sender: WINDOW_BYTES, 'rfc-9002': 2400 } as const

for (const roundTripMs of [20, 100])
  for (const perSecond of [100, 500])
    for (const loss of [0, 0.01, 0.05])
      for (const window of ['sender', 'rfc-9002'] as const)
        print({ window, roundTripMs, perSecond, loss, ...run(roundTripMs, perSecond, loss, WINDOWS[window]) })

function run(roundTripMs: number, perSecond: number, loss: number, windowBytesMin: number) {
  const wayMs = roundTripMs / 2
  const sim = simulate({
    random: createSeededRandom(Number(seedText)),
    network: { delayMs: wayMs, jitterMs: JITTER_MS },
    client: { idleTimeoutMs: 600_000, streamsQueuedMax: 512, initialWindowBytes: WINDOW_BYTES, windowBytesMin },
  })
  sim.until('the connection is open', () => sim.state.isOpen && sim.server.isDone)
  // Credit for all of them: this is about loss, not about the limits of the leader.
  sim.server.frame((to) => to.u8(0x10).varint(2 ** 40))
  sim.clock.advance(10 * roundTripMs)
  sim.network.loss = loss
  const before = sim.connection.stats
  const startMs = sim.clock.monotonicMs()
  const sentMs: number[] = []
  const delaysMs: number[] = []
  /** Ids of the streams that have not arrived, and the number of each. They are given in the order of `send`. */
  const open = new Map<number, number>()
  let refused = 0
  for (let n = 0; delaysMs.length + refused < TRANSACTIONS; ) {
    const nowMs = sim.clock.monotonicMs()
    for (; n < TRANSACTIONS && (n * 1000) / perSecond <= nowMs - startMs; n++) {
      if (sim.connection.send(new Uint8Array(BYTES), () => undefined)) {
        open.set(2 + 4 * sentMs.length, sentMs.length)
        sentMs.push(nowMs)
      } else refused += 1
    }
    sim.clock.advance(STEP_MS)
    for (const [id, sent] of open) {
      if (sim.server.streams.get(id)?.have.size !== BYTES) continue
      open.delete(id)
      delaysMs.push(sim.clock.monotonicMs() - (sentMs[sent] as number) - wayMs)
    }
  }
  sim.server.stop()
  const { packetsSent, lostPackets, windowBytes } = sim.connection.stats
  const sorted = delaysMs.toSorted((a, b) => a - b)
  const at = (share: number) => Math.round((sorted[Math.floor(share * (sorted.length - 1))] ?? 0) * 10) / 10
  return {
    ...{ p50Ms: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99), maxMs: at(1) },
    refused,
    packetsPerTransaction: Math.round(((packetsSent - before.packetsSent) / sentMs.length) * 1000) / 1000,
    lostPackets: lostPackets - before.lostPackets,
    windowBytesAtEnd: Math.round(windowBytes),
  }
}

function print(figure: object): void {
  process.stdout.write(`${JSON.stringify({ bench: 'quic-loss', ...figure })}\n`)
}
