import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import type { DecodedSource } from '../../src/gateway/geyser/decoded/source.ts'
import { createDecodedStreams } from '../../src/gateway/geyser/decoded/streams.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { createDecodedSource } from '../../src/shreds/decoded/source.ts'
import { startGrpcGateway } from '../../test/support/gateway/grpc.ts'
import { oneLeader, startRig } from '../../test/support/shreds/rig.ts'
import { createWriteTimes } from './decoded-write-times.ts'

/**
 * Relay, engine and gRPC server of decoded shreds as a process: the main thread is the gateway thread. Arguments: engine on or off, port of the
 * one destination of raw shreds. Prints its ports and a token when it is ready. On SIGTERM it prints the CPU time since the first data set and these times, which
 * begin with the kernel's receipt of the shred that completes the data set; the first two seconds are apart, in which the code is compiled:
 *   messageMs     of each message, until the kernel has taken the write that carries it (decoded-write-times.ts): the time that is the goal of the issue
 *   dataSetMs     of each data set, the same for the last of its messages
 *   handedMs      of each data set, until its messages were handed to HTTP/2
 *   writtenMs     of each data set, until the turn of the event loop that writes all its messages had ended: the only figure of runs before `messageMs`
 */
const [engine = 'on', destinationPort = '0'] = process.argv.slice(2)
const isOn = engine === 'on'
const WARM_MS = 2000
type Times = { readonly cold: number[]; readonly warm: number[] }
const handed: Times = { cold: [], warm: [] }
const written: Times = { cold: [], warm: [] }
let firstMs: number | undefined
/** Arrivals of the data sets of the current turn. */
let turn: number[] = []
let cpu: { readonly all: NodeJS.CpuUsage; readonly main: NodeJS.CpuUsage } | undefined
const lost = { client: 0, thread: 0 }
const writeTimes = createWriteTimes(() => systemClock.monotonicMs())

await using rig = await startRig(
  {},
  { isDecoding: isOn, leaders: oneLeader, setUp: ({ put }) => put('raw', { port: Number(destinationPort) }) },
)
const decoded = rig.shreds.decoded
const source: DecodedSource = decoded
  ? createDecodedSource(decoded.output)
  : { read: () => ({ [Symbol.dispose]() {} }) }
const streams = createDecodedStreams(
  { filtersMax: 64, pendingBytesMax: 64 * 1024 * 1024 },
  {
    clock: systemClock,
    source: writeTimes.watch(source),
    meter: {
      delivered(seconds) {
        cpu ??= { all: process.cpuUsage(), main: process.threadCpuUsage() }
        const arrivedMs = systemClock.monotonicMs() - seconds * 1000
        firstMs ??= arrivedMs
        handed[isWarm(arrivedMs) ? 'warm' : 'cold'].push(seconds * 1000)
        if (turn.push(arrivedMs) > 1) return
        // Writes of a turn are made at its end.
        setImmediate(() => {
          const nowMs = systemClock.monotonicMs()
          for (const arrived of turn) written[isWarm(arrived) ? 'warm' : 'cold'].push(nowMs - arrived)
          turn = []
        })
      },
      lost: (by, messages) => (lost[by] += messages),
    },
  },
)
const unlimited = { unitsPerSecond: null, grpcStreams: null, egressBytesPerSecond: null }
const plans = { ...BUILT_IN_PLANS, bench: { ...BUILT_IN_PLANS.professional, ...unlimited } }
await using on = await startGrpcGateway([], {}, plans, streams)
const { token } = await on.gateway.subscribe({ plan: 'bench', products: ['shreds-decoded', 'bundle'] })
process.stdout.write(`${JSON.stringify({ shreds: rig.shreds.address.port, grpc: on.port, token })}\n`)
await new Promise((resolve) => process.once('SIGTERM', resolve))

const report = decoded?.status()
const used = cpu && { all: process.cpuUsage(cpu.all), main: process.threadCpuUsage(cpu.main) }
const sumOf = (usage: NodeJS.CpuUsage | undefined) => (usage === undefined ? 0 : usage.user + usage.system)
const times = writeTimes.take()
const warmOf = (given: typeof times.messages) =>
  percentiles(given.filter(({ arrivedMs }) => isWarm(arrivedMs)).map(({ ms }) => ms))
const result = {
  messageMs: warmOf(times.messages),
  dataSetMs: warmOf(times.dataSets),
  handedMs: percentiles(handed.warm),
  writtenMs: percentiles(written.warm),
  writtenFirstMs: percentiles(written.cold),
  cpuMicros: sumOf(used?.all),
  gatewayCpuMicros: sumOf(used?.main),
  shreds: report?.counts.shreds.accepted ?? 0,
  recovered: report?.counts.fecSetsRecovered ?? 0,
  transactions: report?.counts.transactions ?? 0,
  inputDropped: report?.inputDropped ?? 0,
  lost,
}
await new Promise<void>((resolve) => process.stdout.write(`${JSON.stringify(result)}\n`, () => resolve()))

function isWarm(arrivedMs: number): boolean {
  return firstMs !== undefined && arrivedMs - firstMs >= WARM_MS
}

function percentiles(ms: readonly number[]) {
  const sorted = ms.toSorted((a, b) => a - b)
  const at = (share: number) => Math.round((sorted[Math.floor(share * (sorted.length - 1))] ?? 0) * 1000) / 1000
  return { count: ms.length, p50: at(0.5), p90: at(0.9), p99: at(0.99) }
}
