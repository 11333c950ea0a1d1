import type { Clock } from '../../../core/clock.ts'
import type { Random } from '../../../core/random.ts'
import { loadFileMapper } from '../../../platform/files/mapped.ts'
import { createJsonRpcClient } from '../../../platform/http/client/json-rpc.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'
import { type BlockHead, EvmNodeClient, type NodeBlock, type TraceForm } from './client.ts'
import { FOLLOW_DEFAULTS, type FollowOptions, followNode } from './follow.ts'
import { recordNodeBlock } from './record.ts'
import { NodeRing } from './ring.ts'
import { quantityOf } from './values.ts'

export type EvmNodeOptions = Partial<FollowOptions> & {
  /** URL of the node's JSON-RPC. It may contain a key, so it is never logged. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Path of the ring to write; its folder exists. */
  readonly path: string
  readonly timeoutMs?: number
  readonly responseBytesMax?: number
}

export type EvmNodeDeps = { readonly log: Logger; readonly clock: Clock; readonly random: Random }

/** Writes the blocks of a node into a ring at `path`. */
export type EvmNodeSource = AsyncDisposable & {
  readonly path: string
  status(): EvmNodeStatus
}

export type EvmNodeStatus = {
  readonly trace: TraceForm | undefined
  readonly blocks: number
  readonly skippedBlocks: number
  /** Why the node cannot be followed; undefined while it can. */
  readonly failure: string | undefined
}

const TIMEOUT_MS = 30_000
/** Struct logs of a large transaction are tens of megabytes. */
const RESPONSE_BYTES_MAX = 256 * 1024 * 1024

/**
 * Follows an EVM node over JSON-RPC and writes the accesses of its blocks into a ring, which is read like the ring of a node. The node
 * provides accesses without times: all durations are zero.
 */
export async function startEvmNodeSource(options: EvmNodeOptions, deps: EvmNodeDeps): Promise<EvmNodeSource> {
  const { clock, random } = deps
  const log = deps.log.child({ part: 'evm-node' })
  const { path, url, headers, timeoutMs = TIMEOUT_MS, responseBytesMax = RESPONSE_BYTES_MAX } = options
  const mapper = await loadFileMapper()
  const rpc = createJsonRpcClient({ url, timeoutMs, responseBytesMax, ...(headers === undefined ? {} : { headers }) })
  const client = new EvmNodeClient(rpc, clock)
  const ring = new NodeRing(path, { mapper, clock })
  let chainId: bigint | undefined
  let trace: TraceForm | undefined
  let blocks = 0
  /** The timestamp of the first block until the second one comes: a node that has stopped still has its last block, and it is not a new one. */
  let firstNs: bigint | undefined
  let skippedBlocks = 0
  let failure: string | undefined

  const sink = {
    block(block: NodeBlock): void {
      firstNs = blocks === 0 ? timestampNs(block) : undefined
      ring.record((recorder, timeNs) => recordNodeBlock(recorder, block, chainId ?? 0n, timeNs), firstNs)
      blocks += 1
      if (client.traceForm === trace) return
      trace = client.traceForm
      log.info({ trace }, TRACE_MESSAGES[trace ?? 'none'])
    },
    voted({ number, hash }: BlockHead): void {
      const id = { id: hash, block_number: BigInt(number), round: BigInt(number) }
      ring.record((recorder, timeNs) => void recorder.add('BLOCK_QC', id, { timeNs }), firstNs)
    },
    finalized({ number, hash }: BlockHead): void {
      const block_number = BigInt(number)
      ring.record((recorder, timeNs) => {
        recorder.add('BLOCK_FINALIZED', { id: hash, block_number }, { timeNs })
        // The node has executed the block and reports no later stage, so this one completes it.
        recorder.add('BLOCK_VERIFIED', { block_number }, { timeNs })
      }, firstNs)
    },
    skipped(from: number, to: number): void {
      ring.skip(to - from + 1)
      skippedBlocks += to - from + 1
      log.warn({ from, to }, 'too far behind the node: skipping blocks')
    },
    failure(message: string | undefined): void {
      if (message === failure) return
      failure = message
      if (message === undefined) log.info('the node responds again')
      else log.warn({ reason: message }, 'the node cannot be followed')
    },
  }

  log.info('an EVM node provides no times: durations and efficiency are zero')
  const polled = {
    head: async () => {
      chainId ??= await client.chainId()
      return await client.head()
    },
    headOf: client.headOf.bind(client),
    block: client.block.bind(client),
  }
  const following = followNode({ ...FOLLOW_DEFAULTS, ...options }, { client: polled, clock, random, sink })
  return {
    path,
    status: () => ({ trace: client.traceForm, blocks, skippedBlocks, failure }),
    async [Symbol.asyncDispose]() {
      await following[Symbol.asyncDispose]()
      ring[Symbol.dispose]()
    },
  }
}

function timestampNs({ block }: NodeBlock): bigint {
  return quantityOf(block['timestamp'], 'timestamp') * 1_000_000_000n
}

const TRACE_MESSAGES = {
  prestate: 'the node has the prestate tracer',
  'struct-logs': 'the node has struct logs only; accesses are read from each step',
  none: 'the node does not trace: blocks have no contention figures',
} as const satisfies Record<TraceForm, string>
