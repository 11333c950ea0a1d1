import type { KeyObject } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { resolveAddress } from '../../platform/config/address-ref.ts'
import { resolveSecret } from '../../platform/config/secret-ref.ts'
import { loadNativeSeal } from '../../platform/quic/native-seal.ts'
import type { CallNode } from '../../upstreams/call-node.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import type { SenderOptions } from '../options.ts'
import { PATH_PROTOCOLS } from '../path-protocols.ts'
import type { Path } from './dispatch.ts'
import { createHttpPath, createUpstreamPath } from './http-paths.ts'
import { type QuicPath, startQuicPath } from './quic-path.ts'

export type PathsDeps = {
  readonly upstream: Upstream
  readonly callNode: CallNode
  /** The validator identity of QUIC connections to leaders; required when QUIC is enabled. */
  readonly identity?: { readonly publicKey: Uint8Array; readonly privateKey: KeyObject } | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly folder?: string | undefined
  readonly clock: Clock
  readonly random: Random
}

export type Paths = Disposable & {
  readonly paths: readonly Path[]
  /** The path of leaders, which is one of `paths`. */
  readonly quic: QuicPath | undefined
}

/** The configured paths: the upstream nodes, further nodes and relays over HTTP, and the leaders over QUIC. */
export async function openPaths(
  options: Pick<SenderOptions, 'rpc' | 'relays' | 'upstreams' | 'quic'>,
  deps: PathsDeps,
): Promise<Paths> {
  const { upstream, callNode, identity, clock, random } = deps
  using opening = new DisposableStack()
  const httpPaths: Path[] = []
  for (const path of [...options.rpc, ...options.relays]) {
    const sources = deps.folder === undefined ? { env: deps.env } : { env: deps.env, folder: deps.folder }
    const credential = path.credential === undefined ? undefined : await resolveSecret(path.credential, sources)
    const what = `the path ${path.name}`
    const address = { what, given: path.url, protocols: PATH_PROTOCOLS, mayHaveQuery: true }
    const url = await resolveAddress(address, sources)
    httpPaths.push(opening.use(createHttpPath({ ...path, url }, { clock, random, credential })))
  }
  const quic =
    options.quic.enabled && identity !== undefined
      ? opening.use(
          startQuicPath(options.quic, {
            identity,
            callNode,
            slot: () => upstream.bestSlot,
            slotMs: upstream.slotLength.ms,
            clock,
            random,
            seal: await loadNativeSeal(),
          }),
        )
      : undefined
  const paths = [
    ...(options.upstreams ? [createUpstreamPath(upstream)] : []),
    ...httpPaths,
    ...(quic === undefined ? [] : [quic.path]),
  ]
  const opened = opening.move()
  return { paths, quic, [Symbol.dispose]: () => opened.dispose() }
}
