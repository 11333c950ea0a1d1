import { createBackoff } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { writeFileAtomic } from '../../platform/files/atomic.ts'
import { readIfThere } from '../../platform/files/optional.ts'
import { readCompleteResponse } from '../../upstreams/complete-response.ts'
import { upstreamRequest } from '../../upstreams/http-call.ts'
import type { Upstream } from '../../upstreams/upstream.ts'

/** The tables hold blocks of one chain, and the nodes are of another. */
export type OtherChain = { readonly stored: string; readonly found: string }

export type ChainIdentityDeps = {
  readonly upstream: Pick<Upstream, 'forwardAsync'>
  readonly clock: Clock
  readonly random: Random
}

const RETRY = { firstMs: 200, maxMs: 10_000 }
const RESPONSE_BYTES_MAX = 64 * 1024
const GENESIS_HASH = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/

/**
 * Compares the chain of the nodes with the one whose genesis hash is in `file`, beside the tables. Empty tables, and tables without the file, take the chain
 * of the nodes. Waits until a node responds; resolves with undefined for the same chain, and when `signal` is aborted.
 */
export async function findOtherChain(
  file: string,
  tables: { readonly areEmpty: boolean },
  deps: ChainIdentityDeps,
  signal: AbortSignal,
): Promise<OtherChain | undefined> {
  const backoff = createBackoff(RETRY, deps.random)
  let found = await genesisHash(deps.upstream)
  while (found === undefined && !signal.aborted) {
    await waitMs(backoff.nextMs(), deps.clock, signal)
    found = await genesisHash(deps.upstream)
  }
  if (found === undefined || signal.aborted) return undefined
  const stored = tables.areEmpty ? undefined : readHash(file)
  if (stored !== undefined && stored !== found) return { stored, found }
  if (stored === undefined) await writeFileAtomic(file, `${found}\n`)
  return undefined
}

function readHash(file: string): string | undefined {
  const text = readIfThere(file)?.trim() ?? ''
  return GENESIS_HASH.test(text) ? text : undefined
}

async function genesisHash(upstream: ChainIdentityDeps['upstream']): Promise<string | undefined> {
  const body = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"getGenesisHash"}')
  const outcome = await upstream.forwardAsync(upstreamRequest('getGenesisHash', body))
  if (outcome.kind !== 'responded') return undefined
  const response = await readCompleteResponse(outcome, { bytesMax: RESPONSE_BYTES_MAX })
  if (typeof response === 'string') return undefined
  try {
    const { result } = JSON.parse(response.toString('utf8')) as { result?: unknown }
    return typeof result === 'string' && GENESIS_HASH.test(result) ? result : undefined
  } catch {
    return undefined
  }
}

function waitMs(delayMs: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      timer.cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = clock.setTimer(delayMs, end)
    signal.addEventListener('abort', end)
  })
}
