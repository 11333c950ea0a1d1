import assert from 'node:assert/strict'
import { ALERTS } from '../../../scripts/ops/alerts.ts'
import { fires, type Story } from './alert-rules.ts'
import type { Served } from './serve.ts'

/**
 * Every shipped alert is driven by its condition, in a real process where that takes seconds, else in the metrics registry of a process, and evaluated on
 * the samples of that process. An alert on a metric or a label that does not exist never fires, and fails. These are the names by test file.
 */
export const DRIVEN = {
  'alerts-of-services': [
    'SluiceDown',
    'SluiceEventLoopSlow',
    'SluiceCertificateEnds',
    'SluiceUsageWaits',
    'SluiceSubscriptionsEnding',
    'SluiceQuotaLocal',
    'SluiceStoreNotFollowed',
    'SluiceRefusalsRising',
    'SluiceTokensRefused',
    'SluiceResponsesSlow',
    'SluiceUpstreamBehind',
    'SluiceUpstreamFailing',
    'SluiceDedicatedNodeFailing',
    'SluiceAllUpstreamsBehind',
    'SluiceNoUpstream',
    'SluiceShredAlarm',
    'SluiceIndexerBehind',
    'SluiceIndexerStopped',
    'SluiceIndexerRestarting',
    'SluiceRingSilent',
  ],
  'alerts-of-limits': [
    'SluiceRestarting',
    'SluiceDescriptorsShort',
    'SluiceMemoryFull',
    'SluiceDiskFull',
    'SluiceDiskFilling',
  ],
  'alerts-of-registries': [
    'SluiceThreadRestarting',
    'SluiceThreadDown',
    'SluiceConnectionsFull',
    'SluiceUsageLost',
    'SluiceUsageUnsafe',
    'SluiceBillingBehind',
    'SluiceBillingDeadLetters',
    'SluiceBackupOld',
    'SluiceDegraded',
    'SluiceSlotStands',
    'SluiceCallsFailing',
    'SluiceNoWebSocketUpstream',
    'SluiceSlowConsumers',
    'SluiceGapsReported',
    'SluiceSenderNotLanding',
    'SluiceSenderJournal',
    'SluiceSenderNoPath',
    'SluiceTipsLost',
    'SluiceShredsDelay',
    'SluiceShredsOverrun',
    'SluiceShredsThreadRestarting',
    'SluiceDecodedIncomplete',
    'SluiceRingGap',
    'SluiceExecutionSlowClients',
  ],
} as const

export type AlertProof = {
  /** Fails unless the alert fires on the samples of the fault, and not on those before it. */
  expect(name: string, stories: readonly Story[], options?: { at: number }): void
  /** Fails unless all alerts of this file were proven. */
  expectAll(): void
}

export function createAlertProof(file: keyof typeof DRIVEN): AlertProof {
  const proven = new Set<string>()
  return {
    expect(name, stories, options) {
      const alert = ALERTS.find((each) => each.name === name)
      assert.ok(alert, name)
      assert.equal(fires(alert, stories, options), true, `${name} fires`)
      const quiet = stories.map((story) => ({ ...story, after: story.before, continues: false }))
      assert.equal(fires(alert, quiet), false, `${name} is quiet before`)
      proven.add(name)
    },
    expectAll: () => assert.deepEqual([...proven].toSorted(), [...DRIVEN[file]].toSorted()),
  }
}

export const metricsOf = async (served: Served): Promise<string> => `http://${await served.address('metrics')}/metrics`
