import type { Clock } from '../../../core/clock.ts'
import type { Random } from '../../../core/random.ts'
import { ExecRecorder } from '../../../evm/event/recorder.ts'
import { encodeRingHeader, type RingGeometry, ringFileBytes } from '../../../evm/ring/layout.ts'
import { RingWriter } from '../../../evm/ring/writer.ts'
import { loadFileMapper } from '../../../platform/files/mapped.ts'
import { createJsonRpcClient } from '../../../platform/http/client/json-rpc.ts'
import { createRingFile, type RingFileWriter } from '../../../platform/ring-file/writer.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'
import { type BlockHead, EvmNodeClient, type NodeBlock, type TraceForm } from './client.ts'
import { FOLLOW_DEFAULTS, type FollowOptions, followNode } from './follow.ts'
import { recordNodeBlock } from './record.ts'

export type EvmNodeOptions = Partial<FollowOptions> & {
  /** Address of the node's JSON-RPC over HTTP. It may hold a key, so it is never printed. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** The ring that is written; its folder exists. */
  readonly path: string
  readonly timeoutMs?: number
  readonly answerBytesMax?: number
}

export type EvmNodeDeps = { readonly log: Logger; readonly clock: Clock; readonly random: Random }

/** A node turned into a ring: who reads the path gets what a ring has, without durations. */
export type EvmNodeSource = AsyncDisposable & {
  readonly path: string
  status(): EvmNodeStatus
}

export type EvmNodeStatus = {
  readonly trace: TraceForm | undefined
  readonly blocks: number
  readonly skippedBlocks: number
  /** Why nothing comes; undefined when it does. */
  readonly failure: string | undefined
}

const TIMEOUT_MS = 30_000
/** Struct logs of a large transaction are tens of megabytes. */
const RESPONSE_BYTES_MAX = 256 * 1024 * 1024
/** Room for the largest blocks of today's chains several times over; the file is sparse. */
const GEOMETRY: RingGeometry = { capacity: 2 ** 18, payloadBytes: 2 ** 28, contextBytes: 0 }

/**
 * Follows an EVM node over JSON-RPC and writes what its blocks touched into a ring, so that everything behind reads it like a node's
 * own. The node tells what was accessed but not when: all durations are zero, and the log says so at the start.
 */
export async function startEvmNodeSource(options: EvmNodeOptions, deps: EvmNodeDeps): Promise<EvmNodeSource> {
  const { clock, random } = deps
  const log = deps.log.child({ part: 'evm-node' })
  const { path, url, headers, timeoutMs = TIMEOUT_MS, answerBytesMax = RESPONSE_BYTES_MAX } = options
  const mapper = await loadFileMapper()
  const rpc = createJsonRpcClient({ url, timeoutMs, answerBytesMax, ...(headers === undefined ? {} : { headers }) })
  const client = new EvmNodeClient(rpc)
  let ring = openRing()
  let chainId: bigint | undefined
  let trace: TraceForm | undefined
  let blocks = 0
  let skippedBlocks = 0
  let failure: string | undefined

  function openRing(): { file: RingFileWriter; recorder: ExecRecorder } {
    const file = createRingFile(path, { bytes: ringFileBytes(GEOMETRY), header: encodeRingHeader(GEOMETRY), mapper })
    return { file, recorder: new ExecRecorder(new RingWriter({ geometry: GEOMETRY }, file)) }
  }

  function record(add: (recorder: ExecRecorder, timeNs: bigint) => void): void {
    const { recorder } = ring
    try {
      add(recorder, BigInt(Math.floor(clock.nowMs() * 1000)) * 1000n)
    } catch (error) {
      // A block that cannot be understood is asked for again; nothing of it may stay.
      recorder.discard()
      throw error
    }
    recorder.flush()
  }

  const sink = {
    block(block: NodeBlock): void {
      record((recorder, timeNs) => recordNodeBlock(recorder, block, chainId ?? 0n, timeNs))
      blocks += 1
      if (client.traceForm === trace) return
      trace = client.traceForm
      log.info({ trace }, TRACE_WORDS[trace ?? 'none'])
    },
    voted({ number, hash }: BlockHead): void {
      const id = { id: hash, block_number: BigInt(number), round: BigInt(number) }
      record((recorder, timeNs) => void recorder.add('BLOCK_QC', id, { timeNs }))
    },
    finalized({ number, hash }: BlockHead): void {
      const id = { id: hash, block_number: BigInt(number) }
      record((recorder, timeNs) => void recorder.add('BLOCK_FINALIZED', id, { timeNs }))
    },
    /** A new ring takes the place of the old one: readers tell their clients that something is missing. */
    skipped(from: number, to: number): void {
      skippedBlocks += to - from + 1
      log.warn({ from, to }, 'too far behind the node: blocks are left out')
      ring.file[Symbol.dispose]()
      ring = openRing()
    },
    failure(message: string | undefined): void {
      if (message === failure) return
      failure = message
      if (message === undefined) log.info('the node answers again')
      else log.warn({ reason: message }, 'the node cannot be followed')
    },
  }

  log.info('an EVM node tells what was accessed, not when: durations and efficiency stay zero')
  const asking = {
    head: async () => {
      chainId ??= await client.chainId()
      return await client.head()
    },
    headOf: client.headOf.bind(client),
    block: client.block.bind(client),
  }
  const following = followNode({ ...FOLLOW_DEFAULTS, ...options }, { client: asking, clock, random, sink })
  return {
    path,
    status: () => ({ trace: client.traceForm, blocks, skippedBlocks, failure }),
    async [Symbol.asyncDispose]() {
      await following[Symbol.asyncDispose]()
      ring.file[Symbol.dispose]()
    },
  }
}

const TRACE_WORDS = {
  prestate: 'the node has the prestate tracer',
  'struct-logs': 'the node has struct logs only; accesses are taken from each step',
  none: 'the node does not trace: blocks have no contention figures',
} as const satisfies Record<TraceForm, string>
