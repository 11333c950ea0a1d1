import { createCallAdmission } from '../src/access/admission.ts'
import { CREDENTIAL_SOURCES, collectToken, type PresentedToken } from '../src/access/credentials.ts'
import { accessMetrics } from '../src/access/metrics.ts'
import { BUILT_IN_PLANS, createPlanTable } from '../src/access/plan.ts'
import { Calendar } from '../src/access/quota/calendar.ts'
import { createLedger } from '../src/access/quota/ledger.ts'
import { createUsageMemory, EVENTS, HEADER, usageArrays } from '../src/access/usage/event-memory.ts'
import { UsageEventWriter } from '../src/access/usage/event-writer.ts'
import { startUsage } from '../src/access/usage/service.ts'
import { systemClock } from '../src/platform/process/clock.ts'
import { silentLogger } from '../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../src/platform/telemetry/metrics-registry.ts'
import { createAccessFixture } from '../test/support/access/fixture.ts'

/**
 * How many calls one core admits, with 10,000 tokens in rotation, on real time. Two variants: from the token, and from the raw headers of the
 * request, which adds finding the credential source in a new string. Each admission is authenticated, authorized, charged, and counted in usage and
 * metrics. The rate is per second of CPU time, so that other load on the machine does not count; the wall-clock rate is printed too.
 * A third variant counts usage as a thread beside the main one does: as events in shared memory, which are read between the measured calls.
 * Run with --expose-gc to measure the bytes per admission. Prints one JSON line.
 */
const TOKENS = 10_000
const ROUND = 200_000
const ROUNDS = 15
const WARM_UP = 4

const fixture = createAccessFixture()
const plan = { ...BUILT_IN_PLANS.professional, unitsPerSecond: 1_000_000, sendsPerSecond: 1000 }
const requests = Array.from({ length: TOKENS }, (_, at) => {
  const { secret } = fixture.subscribe({ plan: 'bench', products: ['bundle', 'indexer'] })
  const header = at % 2 === 0 ? ['x-token', secret] : ['Authorization', `Bearer ${secret}`]
  return ['Host', 'localhost:8899', 'Content-Type', 'application/json', 'User-Agent', 'bench', ...header]
})
fixture.publish()

const presented = requests.map((headers) => collectToken(CREDENTIAL_SOURCES.rpc, headers))

const registry = createMetricsRegistry()
const calendar = new Calendar(systemClock)
const events = createUsageMemory()
await using usage = startUsage({
  store: { addUsage: async () => {} },
  ...{ calendar, clock: systemClock, log: silentLogger, threads: [events] },
})
const metrics = accessMetrics(registry)
const plans = createPlanTable({ bench: plan })
const deps = {
  snapshot: fixture.snapshot,
  plans: () => plans,
  ledger: createLedger({ calendar }),
  clock: systemClock,
  metrics,
}
const admission = createCallAdmission({ ...deps, usage })
using writer = new UsageEventWriter(events, { calendar, clock: systemClock })
const threadAdmission = createCallAdmission({ ...deps, usage: writer })

const METHODS = ['getSlot', 'getAccountInfo', 'getBalance', 'neverHeardOf', 'getLatestBlockhash']
const calls = METHODS.map((method) => ({ interface: 'rpc', method }) as const)

type Call = (typeof calls)[number]

function admitToken(at: number): boolean {
  const caller = admission.authenticate(presented[at % TOKENS] as PresentedToken, 'bundle', systemClock.nowMs())
  return caller.ok && admission.admit(caller, calls[at % calls.length] as Call).ok
}

function admitRequest(at: number): boolean {
  const token = collectToken(CREDENTIAL_SOURCES.rpc, requests[at % TOKENS] as string[])
  const caller = admission.authenticate(token, 'bundle', systemClock.nowMs())
  return caller.ok && admission.admit(caller, calls[at % calls.length] as Call).ok
}

function admitInThread(at: number): boolean {
  const caller = threadAdmission.authenticate(presented[at % TOKENS] as PresentedToken, 'bundle', systemClock.nowMs())
  return caller.ok && threadAdmission.admit(caller, calls[at % calls.length] as Call).ok
}

const { header } = usageArrays(events)

/** Without the memory of the reader. */
function admitRead(at: number): boolean {
  if (at % EVENTS === 0) header[HEADER.read] = header[HEADER.written] as number
  return admitInThread(at)
}

/** As `measure`, without the time of the reader. */
function measureEvents() {
  const rates: number[] = []
  const readUs: number[] = []
  for (let count = 0; count < ROUNDS; count++) {
    let [spentUs, readerUs, admitted] = [0, 0, 0]
    while (admitted < ROUND) {
      const before = process.cpuUsage()
      for (let left = EVENTS; left > 0; left--) if (admitInThread(admitted)) admitted += 1
      const between = process.cpuUsage()
      usage.state()
      const after = process.cpuUsage()
      spentUs += between.user + between.system - before.user - before.system
      readerUs += after.user + after.system - between.user - between.system
    }
    rates.push((admitted / spentUs) * 1e6)
    readUs.push(readerUs / admitted)
  }
  const median = (values: number[]) => values.slice(WARM_UP).toSorted((a, b) => a - b)[(ROUNDS - WARM_UP) >> 1] ?? 0
  return { perCpuSecond: Math.round(median(rates)), readNs: Math.round(median(readUs) * 1000) }
}

async function measure(admitOne: (at: number) => boolean) {
  const rates: { cpu: number; wall: number }[] = []
  let refused = 0
  for (let count = 0; count < ROUNDS; count++) {
    const cpuBefore = process.cpuUsage()
    const before = performance.now()
    for (let at = 0; at < ROUND; at++) if (!admitOne(at)) refused += 1
    const wallMs = performance.now() - before
    const { user, system } = process.cpuUsage(cpuBefore)
    rates.push({ cpu: (ROUND / (user + system)) * 1e6, wall: (ROUND / wallMs) * 1000 })
    // Lets the usage flush run, as in a serving process.
    await new Promise((resolve) => setImmediate(resolve))
  }
  const median = (values: number[]) => Math.round(values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0)
  const warm = rates.slice(WARM_UP)
  return { perCpuSecond: median(warm.map(({ cpu }) => cpu)), perSecond: median(warm.map(({ wall }) => wall)), refused }
}

function bytesPer(admitOne: (at: number) => boolean): number | null {
  const { gc } = globalThis
  if (gc === undefined) return null
  // Few enough that no garbage collection happens in between.
  const count = 20_000
  const samples: number[] = []
  for (let sample = 0; sample < 9; sample++) {
    gc()
    const before = process.memoryUsage().heapUsed
    for (let at = 0; at < count; at++) admitOne(at)
    samples.push((process.memoryUsage().heapUsed - before) / count)
  }
  return Math.round(samples.toSorted((a, b) => a - b)[4] ?? 0)
}

const fromToken = await measure(admitToken)
const fromHeaders = await measure(admitRequest)
const inThread = measureEvents()
const result = {
  bench: 'admit',
  tokens: TOKENS,
  fromToken: { ...fromToken, bytes: bytesPer(admitToken) },
  fromHeaders: { ...fromHeaders, bytes: bytesPer(admitRequest) },
  inThread: { ...inThread, bytes: bytesPer(admitRead) },
  node: process.version,
  arch: process.arch,
}
process.stdout.write(`${JSON.stringify(result)}\n`)
