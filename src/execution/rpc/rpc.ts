import type { ServerResponse } from 'node:http'
import { BLOCKS_HELD_HEADER } from '../../contract/execution-routes.ts'
import type { Clock } from '../../core/clock.ts'
import type { WaitingWork } from '../../core/work.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { WorkBudget, WorkOwner } from '../api/work-budget.ts'
import { createWorkQueue } from '../api/work-queue.ts'
import type { ExecutionMetrics, RpcReadings } from '../metrics.ts'
import type { ExecutionOptions } from '../options.ts'
import type { Blocks } from './blocks.ts'
import { type CallMeter, createCallMeter } from './call-meter.ts'
import { createEthMethods } from './eth-methods.ts'
import { createRpcPermits } from './permits.ts'
import { createRpcPosts, type RpcPost } from './post.ts'
import { RenderedBlocks } from './rendered-blocks.ts'

export type RpcDeps = {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<ExecutionMetrics, 'calls' | 'limits'>
  readonly blocks: Blocks
  readonly budget: WorkBudget
  readonly chainId: () => number | null
  readonly clientVersion: string
}

export type Rpc = {
  readonly post: (post: RpcPost) => Promise<void>
  /** Runs the work of another request within the same limits; undefined when its client has disconnected. Throws a LimitFailure. */
  readonly run: RunWork
  readonly readings: RpcReadings
}

export type RunWork = <Result>(
  owner: WorkOwner,
  response: ServerResponse,
  workOf: (meter: CallMeter) => WaitingWork<Result>,
) => Promise<Result | undefined>

/** Concurrent requests of all clients: their bodies are held in memory. */
const REQUESTS_MAX = 1024
/** Unread responses of maximum size, per client and in total. */
const UNREAD_RESPONSES = { perClient: 2, inAll: 8 }
/** A response of this size is not refused because of other responses. */
const SMALL_RESPONSE_BYTES = 64 * 1024

/** `POST /`: Ethereum JSON-RPC over the blocks that are held, limited in work and memory. */
export function createRpc(options: ExecutionOptions['rpc'], deps: RpcDeps): Rpc {
  const { clock, log, metrics, budget } = deps
  const { requestBytesMax, responseBytesMax } = options
  const rendered = new RenderedBlocks({ bytesMax: options.renderedBytesMax })
  const methods = createEthMethods({ ...deps, rendered, logBlocksMax: options.logBlocksMax })
  const permits = createRpcPermits({
    perClientMax: options.requestsPerClientMax,
    inAllMax: REQUESTS_MAX,
    unreadPerClientMax: UNREAD_RESPONSES.perClient * responseBytesMax,
    unreadInAllMax: UNREAD_RESPONSES.inAll * responseBytesMax,
    smallBytesMax: SMALL_RESPONSE_BYTES,
  })
  const queue = createWorkQueue(clock)
  const post = createRpcPosts(
    { bodyBytesMax: requestBytesMax, batchItemsMax: options.batchItemsMax, responseBytesMax },
    {
      clock,
      budget,
      permits,
      queue,
      heldHeaders() {
        const held = deps.blocks.ranges.map(({ from, to }) => `${from}-${to}`)
        return held.length === 0 ? {} : { [BLOCKS_HELD_HEADER]: held.join(', ') }
      },
      methods,
      onFault: (err, method) => log.error({ err, method }, 'JSON-RPC method failed'),
      onLimit: (limit) => metrics.limits.inc({ limit }),
      onCall: (method, outcome) =>
        metrics.calls.inc({
          method: Object.hasOwn(methods, method) ? (method as keyof typeof methods) : 'other',
          outcome,
        }),
    },
  )
  return {
    post,
    async run(owner, response, workOf) {
      using _permit = permits.acquire(owner)
      const leaving = new AbortController()
      response.once('close', () => leaving.abort())
      return await queue.run(owner, workOf(createCallMeter(budget, owner)), leaving.signal)
    },
    readings: {
      requests: () => permits.open,
      unreadBytes: () => permits.unreadBytes,
      renderedBytes: () => rendered.bytes,
    },
  }
}
