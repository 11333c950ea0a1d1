import type { AccessService } from '../../../access/service.ts'
import {
  type CustomerFacts,
  createProcessConditions,
  customerConditions,
  type Observed,
} from '../../../admin/notices/conditions.ts'
import { createCommandReceiver, createWebhook, type Receiver } from '../../../admin/notices/receivers.ts'
import { NO_RECEIVER, type Notices, noticeRecordWire, startNotices } from '../../../admin/notices/service.ts'
import { ServiceError } from '../../../core/error.ts'
import { resolveSecret } from '../../../platform/config/secret-ref.ts'
import { writeFileAtomic } from '../../../platform/files/atomic.ts'
import { readIfThere } from '../../../platform/files/optional.ts'
import { childEnv } from '../../../platform/process/child.ts'
import { createTimeSlices } from '../../../platform/process/time-slices.ts'
import type { MetricsView } from '../../../platform/telemetry/metrics-view.ts'
import type { Shreds } from '../../../shreds/service.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'
import type { Settings } from '../config/settings.ts'
import type { ControlMethodsOf } from '../process/control-protocol.ts'
import { lastBackupMs } from '../process/last-backup.ts'
import type { ProcessContext } from '../process/open-process.ts'
import { VERSION } from '../process/version.ts'
import { createMetricSum } from '../top/metric-sum.ts'

export type NoticesPartDeps = ProcessContext<never> & {
  readonly access: Pick<AccessService, 'snapshot' | 'monthUnits' | 'plans'>
  /** The metrics of all threads. */
  readonly metrics: MetricsView
  readonly nodes: () => readonly NodeStatus[]
  readonly shreds: Pick<Shreds, 'status'> | undefined
}

const FILE = 'notices.json'
const CERTIFICATES = 'sluice_tls_not_after_timestamp_seconds'

/** Notices as the `notices` section of the configuration sets them up. */
export function openNotices(settings: Settings, deps: NoticesPartDeps): Promise<Notices> {
  const { clock, access, env } = deps
  const options = settings.config.notices
  const nameOf = (id: string) => access.snapshot().subscription(id)?.name ?? id
  const conditionsOf = createProcessConditions(options, nameOf)
  const path = deps.state.file(FILE)
  const sources = { env, folder: settings.loaded.folder }
  const receivers: Receiver[] = options.webhooks.map(({ secrets, ...webhook }) =>
    createWebhook(webhook, {
      clock,
      version: VERSION,
      secrets: () => Promise.all(secrets.map((reference) => resolveSecret(reference, sources))),
    }),
  )
  if (options.command !== undefined)
    receivers.push(
      createCommandReceiver({ command: options.command, kinds: options.commandKinds, env: commandEnv(env) }, deps),
    )
  return startNotices(options, {
    ...deps,
    receivers,
    file: { read: async () => readIfThere(path), write: (text) => writeFileAtomic(path, text) },
    async observe(sinceMs) {
      const nowMs = clock.nowMs()
      const observed = observe(deps, settings.stateDir, sinceMs)
      const facts: CustomerFacts = {
        snapshot: access.snapshot,
        monthUnits: access.monthUnits,
        limitsOf: ({ plan, overrides }) => access.plans().limitsOf(plan, overrides),
      }
      return [
        ...conditionsOf(observed, nowMs, clock.monotonicMs()),
        ...(await customerConditions(options, facts, { nowMs, slices: createTimeSlices() })),
      ]
    },
  })
}

/** A program of the operator needs a search path, and no secret of the service. */
function commandEnv(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return { ...childEnv(), PATH: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin' }
}

export function observe(
  { nodes, shreds, metrics }: Pick<NoticesPartDeps, 'nodes' | 'shreds' | 'metrics'>,
  stateDir: string,
  sinceMs: number,
): Observed {
  const relay = shreds?.status()
  const certificates = Object.entries(createMetricSum(metrics).by(CERTIFICATES, 'listener'))
  return {
    nodes: nodes(),
    destinations: relay?.destinations,
    hasShreds: (relay?.sourceRates ?? []).some((rate) => rate > 0),
    certificates: new Map(certificates.map(([listener, seconds]) => [listener, seconds * 1000])),
    backupAtMs: lastBackupMs(stateDir) ?? sinceMs,
  }
}

const LISTED_MAX = 200

/** The control methods of notices; `undefined` where no receiver is configured. */
export function noticeMethods(notices: Notices | undefined): ControlMethodsOf<'notices' | 'notice-test'> {
  const opened = () => {
    if (notices !== undefined) return notices
    throw new ServiceError('wrong-state', NO_RECEIVER.message, { fix: NO_RECEIVER.fix })
  }
  return {
    notices: () => opened().list().slice(0, LISTED_MAX).map(noticeRecordWire),
    'notice-test': async () => noticeRecordWire(await opened().test()),
  }
}
