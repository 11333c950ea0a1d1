import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ALERTS } from '../../scripts/ops/alerts.ts'
import { accessMetrics } from '../../src/access/metrics.ts'
import { Calendar } from '../../src/access/quota/calendar.ts'
import { startUsage } from '../../src/access/usage/service.ts'
import { billingMetrics } from '../../src/admin/billing/metrics.ts'
import { createManualClock } from '../../src/core/clock.ts'
import { ServiceError } from '../../src/core/error.ts'
import { type ExecutionReadings, executionMetrics } from '../../src/execution/metrics.ts'
import { NO_STATS } from '../../src/execution/source/message.ts'
import { gatewayMetrics } from '../../src/gateway/metrics.ts'
import { createListenerMetrics } from '../../src/platform/net/listener-metrics.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import type { MetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { createProcessRegistry } from '../../src/platform/telemetry/process-metrics.ts'
import { threadSupervisionMetrics } from '../../src/platform/telemetry/thread-supervision-metrics.ts'
import { LISTENERS } from '../../src/processes/compose/config/listener.ts'
import { processHealthMetrics } from '../../src/processes/compose/process/process-health-metrics.ts'
import { senderMetrics } from '../../src/sender/metrics.ts'
import { receiptOf } from '../../src/sender/receipts/test-receipt.ts'
import { SHRED_OUTCOMES } from '../../src/shreds/decoded/events.ts'
import { decodedMetrics } from '../../src/shreds/decoded/metrics.ts'
import type { DecodedThreadReport } from '../../src/shreds/decoded/protocol.ts'
import { shredsMetrics } from '../../src/shreds/metrics.ts'
import { DELAY_BOUNDS_MICROS, DROP_REASONS, type RelayReport } from '../../src/shreds/relay/protocol.ts'
import { SHRED_FAULTS } from '../../src/solana/shred/shred.ts'
import { upstreamsMetrics } from '../../src/upstreams/metrics.ts'
import { createAlertProof, DRIVEN } from '../support/process/alert-proof.ts'
import { parseScrape } from '../support/process/alert-rules.ts'

const NO_EXECUTION: ExecutionReadings = {
  connections: () => 0,
  waitingFrames: () => 0,
  window: () => ({ entries: 0, bytes: 0, entriesMax: 1 }),
  ring: () => ({ seqno: 0, lagEvents: 0, stats: NO_STATS }),
  ageSeconds: () => 0,
  isHealthy: () => true,
  blockNumber: () => 0,
  tps: () => 0,
  blocksHeld: () => 0,
  isSimulated: () => false,
  heldRange: () => undefined,
  archive: () => ({ blocks: 0, bytes: 0, skipped: 0 }),
  history: () => ({ blocks: 0, bytes: 0, failures: 0 }),
  rpc: { requests: () => 0, unreadBytes: () => 0, renderedBytes: () => 0 },
}

function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>
}

const NO_REPORT: RelayReport = {
  kind: 'report',
  counts: {
    ...{ received: 0, relayed: 0, unchecked: 0, checkedHere: 0, behind: 0 },
    dropped: zeros(DROP_REASONS),
    faults: zeros(SHRED_FAULTS),
  },
  perSource: [],
  destinations: [],
  newestSlot: undefined,
  version: undefined,
  windowResets: 0,
  overruns: 0,
  delays: { packets: [], sumMicros: 0 },
}

describe('alerts on the samples of a registry', () => {
  const proof = createAlertProof('alerts-of-registries')

  /** `set` registers the metrics of a module; what it returns is the fault. */
  async function expectOn(
    name: string,
    set: (registry: MetricsRegistry) => Promise<() => Promise<void>>,
    continues = false,
    at = continues ? undefined : 8,
  ): Promise<void> {
    using registry = createProcessRegistry({ build: { version: '0' } })
    const drive = await set(registry)
    const from = parseScrape(await registry.text())
    await drive()
    const to = parseScrape(await registry.text())
    proof.expect(name, [{ before: from, after: to, continues }], at === undefined ? undefined : { at })
  }

  test('threads that end', async () => {
    const supervised = async (registry: MetricsRegistry) => {
      const threads = threadSupervisionMetrics(registry, ['main', 'gateway-1'])
      threads.setUp('gateway-1', true)
      return threads
    }
    await expectOn('SluiceThreadRestarting', async (registry) => {
      const threads = await supervised(registry)
      return async () => {
        for (let time = 0; time < 3; time++) threads.restarted('gateway-1')
      }
    })
    await expectOn(
      'SluiceThreadDown',
      async (registry) => {
        const threads = await supervised(registry)
        return async () => threads.setUp('gateway-1', false)
      },
      true,
    )
  })

  test('connections, slow clients, gaps', async () => {
    await expectOn(
      'SluiceConnectionsFull',
      async (registry) => {
        const { onRefused } = createListenerMetrics(registry, LISTENERS)('rpc')
        return async () => onRefused?.('connections')
      },
      true,
    )
    await expectOn('SluiceSlowConsumers', async (registry) => {
      const { ws } = gatewayMetrics(registry)
      return async () => ws.slow.inc(6)
    })
    await expectOn('SluiceGapsReported', async (registry) => {
      const { gapsReported } = gatewayMetrics(registry)
      return async () => gapsReported.inc()
    })
    await expectOn(
      'SluiceExecutionSlowClients',
      async (registry) => {
        const { dropped } = executionMetrics(registry)
        return async () => dropped.inc()
      },
      true,
    )
  })

  test('usage that is lost, and usage that is nowhere safe', async () => {
    const failing = async (registry: MetricsRegistry) => {
      const clock = createManualClock()
      const away = async () => {
        throw new ServiceError('store-unavailable', 'away')
      }
      const full = async () => {
        throw new ServiceError('disk-full', 'no space')
      }
      const spool = { name: 'spool', found: undefined, save: full, clear: full, [Symbol.asyncDispose]: async () => {} }
      const usage = startUsage({
        ...{ store: { addUsage: away }, calendar: new Calendar(clock), clock, log: silentLogger, spool },
        waitingRowsMax: 10,
      })
      accessMetrics(registry, {
        usage: usage.state,
        ending: () => ({ within1d: 0, within7d: 0 }),
        permits: () => ({ wsConnections: 0, wsSubscriptions: 0, grpcStreams: 0 }),
        snapshot: () => ({ revision: 0, subscriptions: 0, tokens: 0 }),
        shared: () => undefined,
      })
      return async () => {
        for (let round = 0; round < 2; round++) {
          for (let at = 0; at < 20; at++) usage.countAdmitted(usage.createMeter(`sub_${at}`, `tok_${at}`), 'rpc', 1)
          await usage.flush()
        }
      }
    }
    await expectOn('SluiceUsageLost', failing)
    await expectOn('SluiceUsageUnsafe', failing)
  })

  test('billing that is behind, or refused', async () => {
    const billing = async (
      registry: MetricsRegistry,
      fault: { readonly dead?: number; readonly behindMs?: number },
    ) => {
      let figures = { waiting: 1, dead: 0, behindMs: 0 }
      billingMetrics(registry, { counts: () => ({ sent: 0, dead: 0, failures: 0 }), figures: () => figures })
      return async () => void (figures = { ...figures, ...fault })
    }
    await expectOn('SluiceBillingBehind', (registry) => billing(registry, { behindMs: 3 * 3_600_000 }))
    await expectOn('SluiceBillingDeadLetters', (registry) => billing(registry, { dead: 2 }))
  })

  test('a process with a fault, and an old backup', async () => {
    const health = async (
      registry: MetricsRegistry,
      fault: { readonly parts?: number; readonly backupMs?: number },
    ) => {
      let now: typeof fault = {}
      processHealthMetrics(registry, { degraded: () => now.parts ?? 0, lastBackupMs: () => now.backupMs })
      return async () => void (now = fault)
    }
    await expectOn('SluiceDegraded', (registry) => health(registry, { parts: 1 }), false, 60)
    // The rules run from the time 0 of promtool on, with a scrape every 15 s.
    const days = (count: number) => (count * 86_400) / 15
    await expectOn('SluiceBackupOld', (registry) => health(registry, { backupMs: 1000 }), false, days(3.1))
    await assert.rejects(
      expectOn('SluiceBackupOld', (registry) => health(registry, { backupMs: 1000 }), false, days(2.9)),
      /SluiceBackupOld fires/,
    )
  })

  test('nodes without a new slot, with failing calls, without WebSocket', async () => {
    await expectOn(
      'SluiceSlotStands',
      async (registry) => {
        const metrics = upstreamsMetrics(registry)
        return async () => {
          metrics.add('n1')
          metrics.of('n1').health?.slot.set(1000)
        }
      },
      false,
      20,
    )
    await expectOn(
      'SluiceCallsFailing',
      async (registry) => {
        const metrics = upstreamsMetrics(registry)
        metrics.add('n1')
        const callBoth = async (good: number) => {
          for (let at = 0; at < good; at++) metrics.of('n1').call('responded', 1)
          metrics.of('n1').call('failed', 1)
        }
        await callBoth(1)
        return () => callBoth(9)
      },
      true,
    )
    await expectOn('SluiceNoWebSocketUpstream', async (registry) => {
      let isDown = 0
      const others = { allBehind: () => 0, dedicated: () => 0, dedicatedFailing: () => 0, slotLengthSeconds: () => 0.4 }
      upstreamsMetrics(registry, { ...others, wsDown: () => isDown })
      return async () => void (isDown = 1)
    })
  })

  test('the sender, shreds and the ring', async () => {
    const senderOf = (registry: MetricsRegistry, tipEventsLost = () => 0) =>
      senderMetrics(registry, ['a'], {
        pending: () => 0,
        receipts: () => 0,
        knownSignatures: () => 0,
        connections: () => 0,
        tipEventsLost,
      })
    await expectOn(
      'SluiceSenderNotLanding',
      async (registry) => {
        const sender = senderOf(registry)
        return async () => {
          for (let at = 0; at < 10; at++) sender.settled(receiptOf(`s${at}`, { state: 'expired' }))
        }
      },
      true,
    )
    await expectOn('SluiceSenderJournal', async (registry) => {
      const sender = senderOf(registry)
      return async () => sender.journalFailed()
    })
    await expectOn(
      'SluiceSenderNoPath',
      async (registry) => {
        const sender = senderOf(registry)
        return async () => sender.received('no-path')
      },
      true,
    )
    await expectOn('SluiceTipsLost', async (registry) => {
      let lost = 0
      senderOf(registry, () => lost)
      return async () => void (lost = 1)
    })
    await expectOn('SluiceShredsThreadRestarting', async (registry) => {
      const shreds = shredsMetrics(registry)
      return async () => {
        for (let time = 0; time < 3; time++) shreds.threadRestarted('relay')
      }
    })
    await expectOn(
      'SluiceShredsDelay',
      async (registry) => {
        const shreds = shredsMetrics(registry)
        const record = (slow: number) => {
          // Those that are slow take between 10 and 25 ms.
          const packets = DELAY_BOUNDS_MICROS.map((micros) =>
            micros === 50 ? 100 - slow : micros === 25_000 ? slow : 0,
          )
          const delays = { packets: [...packets, 0], sumMicros: 5000 + slow * 20_000 }
          shreds.record({ ...NO_REPORT, delays }, () => undefined)
        }
        record(0)
        return async () => record(2)
      },
      true,
    )
    await expectOn('SluiceShredsOverrun', async (registry) => {
      const shreds = shredsMetrics(registry)
      return async () => shreds.record({ ...NO_REPORT, overruns: 3 }, () => undefined)
    })
    await expectOn(
      'SluiceDecodedIncomplete',
      async (registry) => {
        const decoded = decodedMetrics(registry)
        const slots = {
          ...zeros(['age', 'silence', 'count', 'memory', 'end', 'complete', 'incomplete', 'missing']),
          complete: 10,
        }
        const report = (incomplete: number): DecodedThreadReport => ({
          kind: 'report',
          counts: {
            shreds: zeros(SHRED_OUTCOMES),
            ...{ dataSets: 0, transactions: 0, markers: 0, gaps: 0, fecSetsRecovered: 0, fecSetsRecoveryFailed: 0 },
            ...{ fecSetsConflicting: 0, dataSetsConflicting: 0, dataSetsUndecodable: 0, parentsConflicting: 0 },
            dataSetsVoid: 0,
            slots: { ...slots, incomplete },
          },
          newestSlot: 0,
          slots: [],
          ...{ openSlots: 0, heldBytes: 0, lookupTables: 0, unresolved: 0, dataSetsTooLarge: 0, inputDropped: 0 },
        })
        decoded.record(report(0))
        return async () => decoded.record(report(10))
      },
      true,
    )
    await expectOn('SluiceRingGap', async (registry) => {
      const metrics = executionMetrics(registry)
      let stats = NO_STATS
      metrics.attach({ ...NO_EXECUTION, ring: () => ({ seqno: 0, lagEvents: 0, stats }) })
      return async () => void (stats = { ...NO_STATS, gaps: 1 })
    })
  })

  test('all were driven, and each alert is in one of the files', () => {
    proof.expectAll()
    assert.deepEqual(Object.values(DRIVEN).flat().toSorted(), ALERTS.map(({ name }) => name).toSorted())
  })
})
