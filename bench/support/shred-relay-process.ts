import { readdirSync, readFileSync } from 'node:fs'
import type { ThreadPriority } from '../../src/platform/native/thread-schedule.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import type { UdpEngine } from '../../src/platform/udp/port.ts'
import { startRelayInWorker } from '../../src/shreds/relay/relay-in-worker.ts'
import { LEADER_ID, VERSION } from '../../test/support/shreds/rig.ts'

/**
 * The service's relay thread as a process that can be pinned to a core. Arguments: port, number of destinations, the first one's port, engine,
 * signatures on or off, priority, core of the relay thread. Prints the same lines as reference/shred-fanout.c: milliseconds, CPU milliseconds (here also of
 * the other threads), and the packets in and out so far with every report of the thread, and a last line on SIGTERM. Ends with its parent.
 */
const [
  port = '0',
  count = '0',
  firstPort = '0',
  engine = 'sendmmsg',
  signatures = 'off',
  priority = 'normal',
  core = '',
] = process.argv.slice(2)
const UNLIMITED = 1e9
const total = { in: 0, out: 0 }
function report(): void {
  process.stdout.write(`${JSON.stringify({ ms: performance.now(), ...cpuTimes(), ...total })}\n`)
}

/** CPU nanoseconds of each thread: the first field of schedstat (proc(5)). */
function threadTimes(): Map<string, number> {
  const times = new Map<string, number>()
  for (const thread of readdirSync('/proc/self/task')) {
    try {
      times.set(thread, Number(readFileSync(`/proc/self/task/${thread}/schedstat`, 'latin1').split(' ')[0]))
    } catch {
      // The thread has ended.
    }
  }
  return times
}

const atStart = new Map<string, number>()

/** The relay thread is the one with the most CPU time since the start of the measurement. */
function cpuTimes(): { cpuMs: number; otherCpuMs: number } {
  const used = [...threadTimes()].map(([thread, time]) => (time - (atStart.get(thread) ?? 0)) / 1e6)
  const cpuMs = Math.max(...used)
  return { cpuMs, otherCpuMs: used.reduce((sum, each) => sum + each, -cpuMs) }
}

const LIMITS = { shredsPerSlotMax: 32_768, window: { backSlots: 64, aheadSlots: 32 } }

const relay = await startRelayInWorker(
  {
    port: {
      listen: { host: '127.0.0.1', port: Number(port) },
      sources: ['127.0.0.1'],
      engine: engine as UdpEngine,
      receiveBufferBytes: 25 * 1024 * 1024,
      sendBufferBytes: 4 * 1024 * 1024,
    },
    version: VERSION,
    signatures: signatures === 'on' ? 'auto' : 'off',
    signatureFailuresPerSecond: 200,
    limits: LIMITS,
    limitsMax: LIMITS,
    caps: {
      destinationPacketsPerSecond: UNLIMITED,
      destinationBytesPerSecond: UNLIMITED * 1000,
      totalPacketsPerSecond: UNLIMITED,
      totalBytesPerSecond: UNLIMITED * 1000,
    },
    schedule: { priority: priority as ThreadPriority, core: core === '' ? undefined : Number(core) },
    leaders: [{ fromSlot: 0, toSlot: 2 ** 40, identities: [LEADER_ID] }],
    destinations: Array.from({ length: Number(count) }, (_, at) => ({
      subscriptionId: `sub_${at}`,
      ip: '127.0.0.1',
      port: Number(firstPort) + at,
    })),
  },
  {
    clock: systemClock,
    random: secureRandom,
    log: silentLogger,
    onState() {},
    onReport({ counts, destinations }) {
      if (atStart.size === 0) return
      total.in += counts.received
      for (const { packets } of destinations) total.out += packets
      report()
    },
  },
)

let isEnding = false
async function end(): Promise<void> {
  if (isEnding) return
  isEnding = true
  await relay[Symbol.asyncDispose]()
  report()
  process.stdin.destroy()
}
process.on('SIGTERM', () => void end())
process.stdin.on('end', () => void end()).resume()
for (const [thread, time] of threadTimes()) atStart.set(thread, time)
process.stdout.write('ready\n')
