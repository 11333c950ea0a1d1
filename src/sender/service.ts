import type { KeyObject } from 'node:crypto'
import type { ListenerKey } from '../contract/listener-option.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import { createCallNode } from '../upstreams/call-node.ts'
import type { Upstream } from '../upstreams/upstream.ts'
import { startSignatureVerifier } from './accept/signature-verifier.ts'
import { openPaths } from './dispatch/open-paths.ts'
import type { SenderOptions } from './options.ts'
import { openParts, type PartsDeps } from './parts.ts'
import type { SenderStats } from './receipts/stats.ts'
import { warmUp } from './warm-up.ts'

export type SenderDeps = Omit<
  PartsDeps,
  'paths' | 'leaders' | 'connections' | 'callNode' | 'ws' | 'bestSlot' | 'slotMs'
> & {
  /** The upstream nodes: for reads of the chain, and as one of the paths. */
  readonly upstream: Upstream
  /** Threads for signature checks when `checkThreads` is not configured. */
  readonly checkThreads: number
  /** The validator identity of QUIC connections to leaders; required when QUIC is enabled. */
  readonly identity?: { readonly publicKey: Uint8Array; readonly privateKey: KeyObject } | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly folder?: string | undefined
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
    /** Whether the code is warmed up before the listener opens, for up to a second. */
    readonly isWarmedUp?: boolean | undefined
  },
  given: SenderDeps,
): Promise<Sender> {
  const { upstream, clock, random } = given
  const deps = { ...given, log: given.log.child({ part: 'sender' }) }
  const callNode = createCallNode(upstream, clock)
  await using opening = new AsyncDisposableStack()

  const { paths, quic } = opening.use(await openPaths(options, { ...deps, callNode }))
  const parts = opening.use(
    await openParts(options, {
      ...deps,
      paths,
      leaders: quic?.path,
      connections: () => quic?.connections ?? 0,
      callNode,
      ws: upstream.ws,
      bestSlot: () => upstream.bestSlot,
      slotMs: upstream.slotLength.ms,
    }),
  )
  const verifier = opening.use(
    startSignatureVerifier(
      {
        threads: options.checkThreads ?? deps.checkThreads,
        checkingMax: options.limits.checkingMax,
        delayMsMax: options.limits.checkDelayMsMax,
      },
      { clock, random, log: deps.log },
    ),
  )
  // Meanwhile the connections to nodes and leaders are opened. The dependencies are named one by one: nothing of the warm-up may get into the others.
  if (options.isWarmedUp === true) {
    const { version, docsUrl, log } = deps
    await warmUp(options, { clock, random, log, version, docsUrl, verifier })
  }
  const server = opening.use(await parts.startServer(options.listener, verifier))
  const { receipts, journal, stats, terms } = parts
  const opened = opening.move()
  return {
    address: server.address,
    tipAccounts: terms.tipAccounts,
    stats: () => ({ ...stats.read(receipts.pending), tipEventsLost: deps.tipLedger?.lost ?? 0 }),
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
      await journal.flushed()
    },
    async [Symbol.asyncDispose]() {
      await opened.disposeAsync()
      await journal.flushed()
    },
  }
}
