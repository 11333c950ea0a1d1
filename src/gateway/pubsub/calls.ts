import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import type { FreeRefusals } from '../../access/free-refusals.ts'
import type { Charged } from '../../access/quota/charge.ts'
import type { HeldBytes } from '../../platform/http/held-bytes.ts'
import { type RpcCall, writeCall } from '../../solana/json/json-rpc.ts'
import { readCompleteResponse } from '../../upstreams/complete-response.ts'
import type { NodeResponse, UpstreamResponse } from '../../upstreams/response.ts'
import type { ListenerMeter } from '../metrics.ts'
import {
  errorResponse,
  failureRefusal,
  heldResponseRefusal,
  isRefunded,
  type RefusableRequest,
  type Refusal,
  upstreamRefusal,
} from '../refusal.ts'
import type { Forward } from '../rpc/forward.ts'
import { isFastPathId } from '../rpc/request.ts'
import { replaceId } from '../rpc/response-id.ts'
import { type HeldResponses, RESPONSE_BYTES_MAX, type ResponseLimit } from './held-responses.ts'
import { connectionLimitRefusal, largeResponseRefusal } from './refusal.ts'

/** Forwarded calls of one connection without a response yet. */
const IN_FLIGHT_MAX = 64

/** A call that has an id and was charged. */
type ChargedCall = RpcCall & { readonly id: string; readonly charge: Charged }

export type WsCallsDeps = {
  readonly access: Pick<Access, 'refund'>
  readonly forward: Forward
  readonly meter: Pick<ListenerMeter, 'refused'>
  readonly heldBytes: Pick<HeldBytes, 'limits'>
  readonly freeRefusals: FreeRefusals
}

/** Whose calls they are. */
type WsCallsClient = RefusableRequest & {
  /** Identifies the client: the slot it sees never goes back. */
  readonly connection: object
  countFree(): void
}

/** Ordinary JSON-RPC calls over one WebSocket. */
export class WsCalls {
  readonly #client: WsCallsClient
  readonly #deps: WsCallsDeps
  #inFlight = 0

  constructor(client: WsCallsClient, deps: WsCallsDeps) {
    this.#client = client
    this.#deps = deps
  }

  /** Forwards a call; resolves to the complete response, whose bytes `held` counts. */
  async forward(caller: Caller, call: ChargedCall, held: HeldResponses): Promise<string | Buffer> {
    const { meter } = this.#deps
    if (this.#inFlight >= IN_FLIGHT_MAX) {
      meter.refused('callsInFlight', { subscription: caller.subscription.id, code: 'rate-limited' })
      this.#refund(caller, call)
      return this.#refuse(connectionLimitRefusal('callsInFlight', IN_FLIGHT_MAX, call.charge.cost), call)
    }
    this.#inFlight += 1
    try {
      return await this.#forward(caller, call, held)
    } finally {
      this.#inFlight -= 1
    }
  }

  async #forward(caller: Caller, call: ChargedCall, held: HeldResponses): Promise<string | Buffer> {
    const { meter, heldBytes, freeRefusals } = this.#deps
    const sentId = isFastPathId(call.id) ? call.id : '0'
    const outgoing = {
      body: Buffer.from(writeCall(call, sentId)),
      methods: [call.method],
      single: { params: call.paramsText, id: sentId },
      nodeUser: caller.nodeUser,
      connection: this.#client.connection,
    }
    const response = await new Promise<UpstreamResponse>((resolve) => this.#deps.forward(outgoing, resolve))
    if (response.kind !== 'responded') {
      const asked = { subscription: caller.subscription.id, bytes: outgoing.body.length }
      if (isRefunded(response, freeRefusals, asked)) this.#refund(caller, call)
      return this.#refuse(failureRefusal(response, call.charge.cost), call)
    }
    const { body, limit } = await readHeldResponse(response, held)
    if (limit !== undefined) {
      const code = limit === 'answerBytes' ? 'response-too-large' : 'overloaded'
      meter.refused(limit, { subscription: caller.subscription.id, code })
      if (limit === 'answerBytes') return this.#refuse(largeResponseRefusal(RESPONSE_BYTES_MAX, held.isBatch), call)
      return this.#refuse(heldResponseRefusal(limit, heldBytes.limits[limit]), call)
    }
    if (body === undefined) return this.#refuse(upstreamRefusal('no-upstream'), call)
    if (sentId === call.id) return body
    return replaceId(body, call.id) ?? this.#refuse(upstreamRefusal('no-upstream'), call)
  }

  #refund(caller: Caller, { method, charge }: ChargedCall): void {
    this.#deps.access.refund(caller, { interface: 'ws', method }, charge)
    this.#client.countFree()
  }

  #refuse(refusal: Refusal, { id }: ChargedCall): string {
    return errorResponse(refusal, this.#client, id)
  }
}

/** The complete response, or the limit that it exceeds; neither where it broke off. What it held of a dropped one is released. */
async function readHeldResponse(
  response: NodeResponse,
  held: HeldResponses,
): Promise<{ readonly body?: Buffer; readonly limit?: ResponseLimit }> {
  let heldBytes = 0
  let limit: ResponseLimit | undefined
  const hold = (bytes: number): boolean => {
    limit ??= held.hold(bytes)
    if (limit === undefined) heldBytes += bytes
    return limit === undefined
  }
  const read = await readCompleteResponse(response, { bytesMax: RESPONSE_BYTES_MAX, hold })
  if (read === 'too-large') limit = 'answerBytes'
  if (typeof read !== 'string') {
    if (response.rest !== undefined) return { body: read }
    // A small response may wait for others: a copy, since its pooled memory may be many times its size.
    const body = Buffer.from(read)
    response.pooled?.release()
    if (hold(body.length)) return { body }
  }
  held.release(heldBytes)
  return limit === undefined ? {} : { limit }
}
