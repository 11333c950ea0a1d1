import type { DocsUrl } from '../contract/errors.ts'
import { messageOf } from '../core/error.ts'
import type { AppendFile } from '../platform/files/append.ts'
import type { HeldBytes } from '../platform/http/held-bytes.ts'
import type { HttpServer } from '../platform/http/server/server.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { RefusalRecorder } from '../platform/telemetry/refusal-log.ts'
import type { CallNode } from '../upstreams/call-node.ts'
import type { Upstream } from '../upstreams/upstream.ts'
import { createAccept } from './accept/accept.ts'
import { createAccountChecks } from './accept/account-checks.ts'
import { createAccountLookups } from './accept/account-lookups.ts'
import { createFreshness } from './accept/freshness.ts'
import { createLanding } from './accept/landing.ts'
import { createNoPathLog } from './accept/no-path-log.ts'
import type { TipTerms } from './accept/refusal.ts'
import { createRefusalReporter } from './accept/refusal-reporter.ts'
import { createSecondCheck } from './accept/second-check.ts'
import type { SignatureVerifier } from './accept/signature-verifier.ts'
import { tipTerms } from './accept/tip-terms.ts'
import { createDispatch, type Path } from './dispatch/dispatch.ts'
import { startSenderServer } from './http.ts'
import { senderMetrics } from './metrics.ts'
import type { SenderOptions } from './options.ts'
import { type FollowDeps, startFollow } from './receipts/follow.ts'
import type { Journal } from './receipts/journal.ts'
import { openReceipts } from './receipts/open-receipts.ts'
import type { Receipts } from './receipts/receipts.ts'
import { createStats, type Stats } from './receipts/stats.ts'
import type { TipLedger } from './tips/ledger.ts'
import { recordFound, recordReceipt } from './tips/record.ts'

export type PartsOptions = Pick<
  SenderOptions,
  'tipAccounts' | 'minTipLamports' | 'limits' | 'resendMs' | 'endMs' | 'trustedProxies'
>

export type PartsDeps = BaseDeps & {
  readonly paths: readonly Path[]
  /** The one of `paths` that leads to the leaders. */
  readonly leaders?: Path | undefined
  /** Open connections to leaders. */
  readonly connections: () => number
  readonly callNode: CallNode
  readonly ws: FollowDeps['ws']
  /** The newest slot of any node. */
  readonly bestSlot: () => number
  readonly slotMs: Upstream['slotLength']['ms']
  /** The journal of accepted transactions, read at a restart. Opened with or without `journalSync`. */
  readonly journalFiles: readonly [AppendFile, AppendFile]
  /** Where tips are counted for good; without it they are counted in memory only. */
  readonly tipLedger?: TipLedger | undefined
  readonly registry: MetricsRegistry
  readonly lifecycle?: Pick<Lifecycle, 'degraded' | 'recovered'> | undefined
  readonly version: string
  readonly listenerMetrics: ListenerMetrics
  readonly heldBytes: HeldBytes
  /** Pages of errors; errors have no `docs_url` where it is missing. */
  readonly docsUrl?: DocsUrl | undefined
  readonly refusals?: RefusalRecorder | undefined
}

export type SenderParts = Disposable & {
  readonly receipts: Receipts
  readonly journal: Journal
  readonly stats: Stats
  readonly terms: TipTerms
  /** Opens the listener: from here on transactions are accepted. */
  startServer(listen: ListenerOptions, verifier: SignatureVerifier): Promise<HttpServer>
}

/** What handles a transaction, from its request to its receipt. */
export async function openParts(options: PartsOptions, deps: PartsDeps): Promise<SenderParts> {
  const { paths, callNode, clock, log, slotMs, bestSlot } = deps
  const { limits } = options
  const { rule, terms } = tipTerms(options)
  using opening = new DisposableStack()

  const names = paths.map(({ name }) => name)
  /** Read by the metrics, which are registered first. */
  const readings: { receipts?: Receipts } = {}
  const metrics = senderMetrics(deps.registry, names, {
    pending: () => readings.receipts?.pending ?? 0,
    receipts: () => readings.receipts?.size ?? 0,
    knownSignatures: () => readings.receipts?.knownSignatures ?? 0,
    connections: deps.connections,
    tipEventsLost: () => deps.tipLedger?.lost ?? 0,
  })
  const stats = createStats(names)
  const { receipts, journal, entries, unknown } = opening.use(
    await openReceipts(limits, {
      journalFiles: deps.journalFiles,
      clock,
      onSettled(receipt) {
        metrics.settled(receipt)
        stats.settled(receipt)
        if (receipt.landed === undefined) recordReceipt(deps.tipLedger, receipt, 'expired', clock.nowMs())
      },
      onConfirmed(receipt) {
        const { error, unixMs } = receipt.landed ?? { error: undefined, unixMs: 0 }
        recordReceipt(deps.tipLedger, receipt, error === null ? 'landed' : 'failed', unixMs)
      },
      onJournalFailure(error) {
        metrics.journalFailed()
        deps.lifecycle?.degraded('sender journal', `the journal cannot be written: ${messageOf(error)}`)
      },
      onJournalRecovery: () => deps.lifecycle?.recovered('sender journal'),
    }),
  )
  readings.receipts = receipts
  const followed = new Set([...receipts.watched].map(({ signature }) => signature))
  recordFound(deps.tipLedger, entries, (signature) => followed.has(signature))
  if (unknown > 0)
    log.warn({ transactions: unknown }, 'transactions were in flight when the service stopped; their state is unknown')

  const dispatch = opening.use(
    createDispatch(
      { ...options, ...limits },
      {
        paths,
        leaders: deps.leaders,
        receipts,
        clock,
        slotMs,
        onAttempt({ path, response }, receipt) {
          metrics.attempt(path, response)
          if (response !== 'busy' && receipt.attempts.some((one) => one.path === path && one.times === 1)) {
            metrics.firstResponse(path, clock.monotonicMs() - receipt.acceptedMonotonicMs)
          }
        },
        onThrown: (path, error) => log.error({ err: error, path }, 'a path failed instead of sending'),
      },
    ),
  )
  opening.use(startFollow({ receipts, callNode, ws: deps.ws, clock, bestSlot, slotMs, onReplaced: stats.replaced }))
  const read = createAccountLookups({ callNode, clock })
  const waitingMax = Math.ceil(limits.checkingMax / 8)
  const landing = createLanding({
    freshness: opening.use(createFreshness({ callNode, clock, slotMs, bestSlot, waitingMax })),
    payers: createAccountChecks({ read, clock, bestSlot }),
    nonces: createAccountChecks({ read, clock, bestSlot }),
    checkTwice: createSecondCheck({ clock, slotMs, waitingMax }),
    // A transaction can name dozens of tables: their readings must not take the place of those of payers.
    tables: createAccountChecks({ read: createAccountLookups({ callNode, clock }), clock, bestSlot }),
    terms,
  })
  const opened = opening.move()

  return {
    receipts,
    journal,
    stats,
    terms,
    startServer(listen, verifier) {
      const accept = createAccept(limits, {
        rule,
        terms,
        receipts,
        dispatch,
        landing,
        verifier,
        journal,
        onDispatched(tookMs, receipt) {
          recordReceipt(deps.tipLedger, receipt, 'accepted', receipt.acceptedUnixMs)
          metrics.received('accepted')
          metrics.firstDispatch(tookMs)
          stats.accepted()
        },
        onNoPath: createNoPathLog({ clock, log, paths: names }),
        clock,
      })
      return startSenderServer(
        { listen, trustedProxies: options.trustedProxies, ...limits },
        {
          accept,
          receipts,
          terms,
          version: deps.version,
          isHealthy: () => dispatch.isOpen,
          onDuplicate: () => metrics.received('duplicate'),
          refusals: createRefusalReporter(metrics, deps.refusals),
          log,
          clock,
          random: deps.random,
          heldBytes: deps.heldBytes,
          docsUrl: deps.docsUrl,
          ...deps.listenerMetrics,
        },
      )
    },
    [Symbol.dispose]: () => opened.dispose(),
  }
}
