import type { KeyObject } from 'node:crypto'
import type { DocsUrl } from '../contract/errors.ts'
import type { ListenerKey } from '../contract/listener-option.ts'
import { messageOf } from '../core/error.ts'
import type { AppendFile } from '../platform/files/append.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { RefusalRecorder } from '../platform/telemetry/refusal-log.ts'
import { createCallNode } from '../upstreams/call-node.ts'
import type { Upstream } from '../upstreams/upstream.ts'
import { createAccept } from './accept/accept.ts'
import { createAccountChecks } from './accept/account-checks.ts'
import { createAccountLookups } from './accept/account-lookups.ts'
import { createFreshness } from './accept/freshness.ts'
import { createLanding } from './accept/landing.ts'
import { createRefusalReporter } from './accept/refusal-reporter.ts'
import { startSignatureVerifier } from './accept/signature-verifier.ts'
import { tipTerms } from './accept/tip-terms.ts'
import { createDispatch } from './dispatch/dispatch.ts'
import { openPaths } from './dispatch/open-paths.ts'
import { startSenderServer } from './http.ts'
import { senderMetrics } from './metrics.ts'
import type { SenderOptions } from './options.ts'
import { startFollow } from './receipts/follow.ts'
import { openReceipts } from './receipts/open-receipts.ts'
import type { Receipts } from './receipts/receipts.ts'
import { createStats, pathsThatTook, type SenderStats } from './receipts/stats.ts'
import type { TipLedger } from './tips/ledger.ts'
import { recordFound, recordReceipt } from './tips/record.ts'

export type SenderDeps = BaseDeps & {
  /** The upstream nodes: for reads of the chain, and as one of the paths. */
  readonly upstream: Upstream
  /** The journal of accepted transactions, read at a restart. Opened with or without `journalSync`. */
  readonly journalFiles: readonly [AppendFile, AppendFile]
  /** Where tips are counted for good; without it they are counted in memory only. */
  readonly tipLedger?: TipLedger | undefined
  /** Threads for signature checks when `checkThreads` is not configured. */
  readonly checkThreads: number
  /** The validator identity of QUIC connections to leaders; required when QUIC is enabled. */
  readonly identity?: { readonly publicKey: Uint8Array; readonly privateKey: KeyObject } | undefined
  readonly registry: MetricsRegistry
  readonly lifecycle?: Pick<Lifecycle, 'degraded' | 'recovered'> | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly folder?: string | undefined
  readonly version: string
  readonly listenerMetrics: ListenerMetrics
  /** Pages of errors; errors have no `docs_url` where it is missing. */
  readonly docsUrl?: DocsUrl | undefined
  readonly refusals?: RefusalRecorder | undefined
}

export type Sender = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  readonly tipAccounts: readonly string[]
  stats(): SenderStats
  /** The state of each path, for the operator. */
  paths(): readonly { readonly path: string; readonly isOpen: boolean; readonly message: string }[]
  beginLameDuck(): void
  drain(deadlineMs: number): Promise<void>
}

/** Accepts tipped transactions over HTTP, checks them, dispatches them on every path and follows them on the chain. */
export async function startSender(
  options: Omit<SenderOptions, ListenerKey | 'publicUrl' | 'enabled' | 'priority'> & {
    readonly listener: ListenerOptions
  },
  deps: SenderDeps,
): Promise<Sender> {
  const { upstream, clock, random } = deps
  const slotMs = upstream.slotLength.ms
  const bestSlot = () => upstream.bestSlot
  const log = deps.log.child({ part: 'sender' })
  const { limits } = options
  const { rule, terms } = tipTerms(options)
  const callNode = createCallNode(upstream, clock)
  await using opening = new AsyncDisposableStack()

  const { paths, quic } = opening.use(await openPaths(options, { ...deps, callNode }))
  const names = paths.map(({ name }) => name)

  /** Read by the metrics, which are registered first. */
  const readings: { receipts?: Receipts } = {}
  const metrics = senderMetrics(deps.registry, names, {
    pending: () => readings.receipts?.pending ?? 0,
    receipts: () => readings.receipts?.size ?? 0,
    knownSignatures: () => readings.receipts?.knownSignatures ?? 0,
    connections: () => quic?.connections ?? 0,
  })
  const stats = createStats(names)
  const { receipts, journal, entries, unknown } = opening.use(
    await openReceipts(limits, {
      journalFiles: deps.journalFiles,
      clock,
      onFinished(receipt) {
        if (receipt.state === 'accepted' || receipt.state === 'sent') return
        metrics.finished(receipt.state)
        stats.finished(receipt)
        if (receipt.landed === undefined) return recordReceipt(deps.tipLedger, receipt, 'expired', clock.nowMs())
        if (receipt.landed.error === null) metrics.tip(receipt.tip?.lamports ?? 0n)
        const tookMs = receipt.landed.unixMs - receipt.acceptedUnixMs
        for (const path of pathsThatTook(receipt)) metrics.timeToLand(path, tookMs)
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
        leaders: quic?.path,
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
  opening.use(startFollow({ receipts, callNode, ws: upstream.ws, clock, bestSlot, slotMs, onUnlanded: stats.unlanded }))
  const readAccount = createAccountLookups({ callNode, clock })
  const accept = createAccept(limits, {
    rule,
    terms,
    receipts,
    dispatch,
    landing: createLanding({
      freshness: opening.use(createFreshness({ callNode, clock, slotMs, bestSlot })),
      payers: createAccountChecks(readAccount, clock),
      nonces: createAccountChecks(readAccount, clock),
      terms,
    }),
    verifier: opening.use(
      startSignatureVerifier(
        {
          threads: options.checkThreads ?? deps.checkThreads,
          checkingMax: limits.checkingMax,
          delayMsMax: limits.checkDelayMsMax,
        },
        { clock, random, log },
      ),
    ),
    journal,
    onDispatched(tookMs, receipt) {
      recordReceipt(deps.tipLedger, receipt, 'accepted', receipt.acceptedUnixMs)
      metrics.received('accepted')
      metrics.firstDispatch(tookMs)
      stats.accepted()
    },
    clock,
  })
  const server = opening.use(
    await startSenderServer(
      { listen: options.listener, trustedProxies: options.trustedProxies, ...limits },
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
        random,
        docsUrl: deps.docsUrl,
        ...deps.listenerMetrics,
      },
    ),
  )
  const opened = opening.move()
  return {
    address: server.address,
    tipAccounts: terms.tipAccounts,
    stats: () => stats.read(receipts.pending),
    paths: () =>
      paths.map((path) => ({
        path: path.name,
        isOpen: path.isOpen,
        message: path.name === quic?.path.name ? quic.message() : '',
      })),
    beginLameDuck: () => server.beginLameDuck(),
    async drain(deadlineMs) {
      receipts.wakeAll()
      await server.drain(deadlineMs)
      await journal.settled()
    },
    async [Symbol.asyncDispose]() {
      await opened.disposeAsync()
      await journal.settled()
    },
  }
}
