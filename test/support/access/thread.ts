import { parentPort, workerData } from 'node:worker_threads'
import type { Call } from '../../../src/access/admission.ts'
import type { Permit } from '../../../src/access/quota/permits.ts'
import type { UsageInterface } from '../../../src/access/store/model.ts'
import { type AccessUpdate, openThreadAccess, type ThreadAccessStart } from '../../../src/access/thread-access.ts'
import { EVENTS, HEADER, usageArrays } from '../../../src/access/usage/event-memory.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { createRandom } from '../process/property.ts'
import { createSharedClock, threadClock } from '../process/thread-clock.ts'

/** Calls of a batch. */
export const BATCH_MAX = 8
const ROUND_STEPS = 100
const HELD_MAX = 200
const METHODS = ['getSlot', 'getAccountInfo', 'getTransaction', 'getProgramAccounts', 'sendTransaction', 'neverHeardOf']
const INTERFACES: readonly UsageInterface[] = ['rpc', 'ws', 'grpc']

export type AccessThreadData = {
  readonly start: ThreadAccessStart
  /** Units forwarded so far, by subscription: one row per thread, which it alone writes. */
  readonly forwarded: SharedArrayBuffer
  /** The memory of a clock that the test sets; otherwise the system's. */
  readonly clock: SharedArrayBuffer | undefined
  readonly seed: number
}

export type ThreadRequest =
  | { readonly do: 'update'; readonly update: AccessUpdate }
  | { readonly do: 'storm'; readonly secrets: readonly string[] }
  | { readonly do: 'stop' }
  | { readonly do: 'admit'; readonly secret: string; readonly call: Call; readonly times: number }

export type ThreadReply =
  | { readonly is: 'ready' | 'wake' }
  | { readonly is: 'degraded'; readonly part: string; readonly reason: string }
  | { readonly is: 'stopped'; readonly held: readonly number[]; readonly limited: number; readonly metrics: number }
  | {
      readonly is: 'admitted'
      readonly units: number
      readonly admitted: number
      readonly refusal: string
      readonly limit: number | null
      readonly used: number
    }

if (parentPort !== null) {
  const port = parentPort
  const { start, forwarded, clock: clockMemory, seed } = workerData as AccessThreadData
  const clock = clockMemory === undefined ? threadClock : createSharedClock(clockMemory).clock
  const random = createRandom(seed)
  const reply = (message: ThreadReply) => port.postMessage(message)
  const registry = createMetricsRegistry()
  const access = openThreadAccess(start, {
    ...{ log: silentLogger, clock, registry },
    lifecycle: { degraded: (part, reason) => reply({ is: 'degraded', part, reason }), recovered() {} },
    requestBookings: () => reply({ is: 'wake' }),
  })
  let secrets: readonly string[] = []
  let isRunning = false
  let limited = 0
  const held: { at: number; permit: Permit }[] = []
  const rows = new Float64Array(forwarded)

  const step = () => {
    const at = random(secrets.length)
    const caller = access.authenticate({ token: secrets[at] as string }, 'bundle', clock.nowMs())
    if (!caller.ok) return
    if (random(6) === 0) {
      const permit = access.permits.acquire(caller.subscription.id, 'wsSubscriptions', caller.limits)
      if (permit.ok) held.push({ at, permit })
      else limited += 1
      if (held.length > random(HELD_MAX)) held.splice(random(held.length), 1)[0]?.permit.release()
    }
    let units = 0
    for (let items = 1 + random(BATCH_MAX); items > 0; items--) {
      const call = {
        interface: INTERFACES[random(INTERFACES.length)] as UsageInterface,
        method: METHODS[random(METHODS.length)] as string,
      }
      const outcome = access.admit(caller, call)
      if (!outcome.ok) limited += 1
      else if (random(8) === 0) access.refund(caller, call)
      else units += outcome.cost
    }
    const row = start.thread * secrets.length + at
    rows[row] = (rows[row] as number) + units
  }

  const { header } = usageArrays(start.usage)
  const isRingHalfFull = () =>
    ((Atomics.load(header, HEADER.written) - Atomics.load(header, HEADER.read)) | 0) > EVENTS / 2

  const run = () => {
    if (!isRunning) return
    // No thread outruns its reader as this loop would: a killed one would lose sums that it holds. `usage/events.test.ts` has full rings.
    if (isRingHalfFull()) return void setTimeout(run, 1)
    for (let steps = 0; steps < ROUND_STEPS; steps++) step()
    setImmediate(run)
  }

  port.on('message', (request: ThreadRequest) => {
    if (request.do === 'update') access.apply(request.update)
    else if (request.do === 'storm') {
      secrets = request.secrets
      if (!isRunning) setImmediate(run)
      isRunning = true
    } else if (request.do === 'stop') {
      isRunning = false
      const metrics = INTERFACES.map((at) => registry.value('sluice_access_units_total', { interface: at }) ?? 0)
      const heldOf = secrets.map((_, at) => held.filter((one) => one.at === at).length)
      reply({ is: 'stopped', held: heldOf, limited, metrics: metrics.reduce((sum, units) => sum + units, 0) })
    } else {
      const caller = access.authenticate({ token: request.secret }, 'bundle', clock.nowMs())
      const result = { units: 0, admitted: 0, refusal: caller.ok ? '' : caller.reason }
      for (let count = 0; caller.ok && count < request.times; count++) {
        const outcome = access.admit(caller, request.call)
        if (outcome.ok) {
          result.units += outcome.cost
          result.admitted += 1
        } else result.refusal = outcome.reason
      }
      const limit = caller.ok ? caller.limits.unitsPerSecond : null
      reply({ is: 'admitted', ...result, limit, used: caller.ok ? access.quota(caller).month.used : 0 })
    }
  })
  reply({ is: 'ready' })
}
