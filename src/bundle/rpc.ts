import type { Caller } from '../access/admit.ts'
import type { Budget } from '../access/charge.ts'
import { CARRIERS, collectToken } from '../access/credentials.ts'
import type { Access } from '../access/service.ts'
import type { Clock } from '../core/clock.ts'
import type { AnswerRest, HttpAnswer } from '../host/http-post.ts'
import { readWholeAnswer } from '../upstreams/whole-answer.ts'
import type { LateRefusals } from './late-refusals.ts'
import type { DoorMeter } from './metrics.ts'
import {
  errorText,
  httpStatusOf,
  type Refusal,
  refuseOverLimit,
  refuseSize,
  refuseToken,
  refuseUpstream,
} from './refusal.ts'
import { splitAnswer, splitBatch } from './rpc-answer.ts'
import { isPlainId, type RpcBody, type RpcCall, type RpcItem, readRpcBody, writeCall } from './rpc-request.ts'

/** A request as both readers of the door hand it over. */
export type RpcRequest = {
  /** Names and values in turn, as they came. */
  readonly headers: readonly string[]
  /** What follows the question mark; read for the token and never passed on. */
  readonly query: string
  readonly body: Buffer
  readonly requestId: string
  /** Who asks, for the rule that the slot one client sees never goes back. */
  readonly connection: object
}

export type RpcAnswer = HttpAnswer

/** What a call upstream came to. `not-forwarded` means that no byte of it left: the charge is taken back. */
export type UpstreamAnswer =
  | { readonly kind: 'answered'; readonly body: Buffer; readonly rest?: AnswerRest | undefined }
  | { readonly kind: 'not-forwarded' | 'failed' | 'timeout' }

export type UpstreamRequest = {
  readonly body: Buffer
  readonly methods: readonly string[]
  /** Of a call that is not in a batch: what of it stands in the body, as text. */
  readonly single?: { readonly params: string | undefined; readonly id: string | undefined } | undefined
  readonly subscriptionId: string
  readonly connection: object
}

export type UpstreamCall = (request: UpstreamRequest) => Promise<UpstreamAnswer>

export type RpcDeps = {
  readonly access: Access
  readonly callUpstream: UpstreamCall
  readonly clock: Clock
  readonly meter: Pick<DoorMeter, 'request' | 'refused' | 'late'>
  readonly late: LateRefusals
}

export type Rpc = {
  /** Whose request it is, by its head alone: a body is read only of those who may send one, and only as far as they may. */
  authenticate(
    head: Pick<RpcRequest, 'headers' | 'query' | 'requestId'> & { readonly remoteAddress: string | undefined },
  ): Caller | { readonly ok: false; readonly answer: RpcAnswer | Promise<RpcAnswer> }
  answer(caller: Caller, request: RpcRequest): Promise<RpcAnswer>
}

const JSON_TYPE = { 'content-type': 'application/json' }

/** Token, then body, then each call against the budget; what is admitted is forwarded, what is refused is answered here. */
export function createRpc({ access, callUpstream, clock, meter, late }: RpcDeps): Rpc {
  return {
    authenticate(head) {
      const caller = access.authenticate(collectToken(CARRIERS.rpc, head.headers, head.query), 'bundle', clock.nowMs())
      if (caller.ok) return caller
      const answer = refuse(refuseToken(caller.reason), head)
      const peer = { remoteAddress: head.remoteAddress ?? '', headers: head.headers }
      return { ok: false, answer: late.answered(peer, meter.late, answer) }
    },

    async answer(caller, request) {
      const { requestBytes, batchItems } = caller.limits
      if (request.body.length > requestBytes) {
        meter.refused('requestBytes')
        return refuse(refuseSize('requestBytes', requestBytes), request)
      }
      const body = readRpcBody(request.body.toString('utf8'), { batchItems })
      if (body.kind === 'refused') return plain(caller, body.answer)
      if (body.kind === 'too-many') {
        meter.refused('batchItems')
        return refuse(refuseSize('batchItems', body.limit), request)
      }
      return body.batch ? answerBatch(request, caller, body) : answerOne(request, caller, body.items[0] as RpcItem)
    },
  }

  /** An answer of our own that cost nothing. */
  function plain(caller: Caller, body: string): RpcAnswer {
    return { status: 200, headers: { ...JSON_TYPE, ...budgetHeaders(access.quota(caller), 0) }, body }
  }

  async function answerOne(request: RpcRequest, caller: Caller, item: RpcItem): Promise<RpcAnswer> {
    if ('refusal' in item) return plain(caller, item.refusal)
    const { call } = item
    const admission = access.admit(caller, { interface: 'rpc', method: call.method })
    if (!admission.ok)
      return refuse(refusalOf(admission, call.method), request, call.id, 'limit' in admission ? admission : undefined)
    meter.request(call.method)
    const sentId = call.id === undefined || isPlainId(call.id) ? call.id : '0'
    const upstream = await callUpstream({
      body: Buffer.from(writeCall(call, sentId)),
      methods: [call.method],
      single: { params: call.paramsText, id: sentId },
      subscriptionId: caller.subscription.id,
      connection: request.connection,
    })
    if (upstream.kind !== 'answered') {
      if (upstream.kind === 'not-forwarded') access.refund(caller, { interface: 'rpc', method: call.method })
      return refuse(refuseUpstream(upstream.kind === 'timeout' ? 'upstream-timeout' : 'no-upstream'), request, call.id)
    }
    const headers = { ...JSON_TYPE, ...budgetHeaders(admission, admission.cost) }
    if (call.id === undefined) {
      upstream.rest?.abort()
      return { status: 204, headers: budgetHeaders(admission, admission.cost), body: '' }
    }
    if (sentId === call.id) return { status: 200, headers, body: upstream.body, rest: upstream.rest }
    const whole = await readWholeAnswer(upstream, WHOLE_BYTES_MAX)
    const answer = typeof whole === 'string' ? undefined : splitAnswer(whole.toString('latin1'))
    if (answer === undefined) return refuse(refuseUpstream('no-upstream'), request, call.id)
    return { status: 200, headers, body: Buffer.from(answer.withId(call.id), 'latin1') }
  }

  async function answerBatch(
    request: RpcRequest,
    caller: Caller,
    body: Extract<RpcBody, { kind: 'calls' }>,
  ): Promise<RpcAnswer> {
    const slots: (string | Buffer | undefined)[] = []
    const forwarded: { call: RpcCall; slot: number }[] = []
    let cost = 0
    let lastLimit: Refusal | undefined
    for (const item of body.items) {
      if ('refusal' in item) {
        slots.push(item.refusal)
        continue
      }
      const { call } = item
      const admission = access.admit(caller, { interface: 'rpc', method: call.method })
      if (admission.ok) {
        meter.request(call.method)
        cost += admission.cost
        forwarded.push({ call, slot: slots.length })
        slots.push(undefined)
      } else {
        lastLimit = refusalOf(admission, call.method)
        slots.push(call.id === undefined ? '' : errorAnswer(lastLimit, request.requestId, call.id))
      }
    }
    if (forwarded.length > 0) await forwardBatch(request, caller, forwarded, slots)
    const headers = { ...JSON_TYPE, ...budgetHeaders(access.quota(caller), cost) }
    const answers = slots.filter((slot) => slot !== undefined && slot.length > 0)
    if (answers.length === 0) return { status: 204, headers: budgetHeaders(access.quota(caller), cost), body: '' }
    const status = forwarded.length === 0 && lastLimit !== undefined ? httpStatusOf(lastLimit) : 200
    const retry = status === 429 ? { 'retry-after': String(lastLimit?.retryAfterSeconds ?? 1) } : {}
    return { status, headers: { ...headers, ...retry }, body: joinAnswers(answers as (string | Buffer)[]) }
  }

  /** Calls go upstream under numbers of ours, so that answers in any order, and equal ids, find their way back. */
  async function forwardBatch(
    request: RpcRequest,
    caller: Caller,
    forwarded: readonly { call: RpcCall; slot: number }[],
    slots: (string | Buffer | undefined)[],
  ): Promise<void> {
    const texts = forwarded.map(({ call }, at) => writeCall(call, call.id === undefined ? undefined : String(at)))
    const upstream = await callUpstream({
      body: Buffer.from(`[${texts.join(',')}]`),
      methods: forwarded.map(({ call }) => call.method),
      subscriptionId: caller.subscription.id,
      connection: request.connection,
    })
    if (upstream.kind === 'not-forwarded') {
      for (const { call } of forwarded) access.refund(caller, { interface: 'rpc', method: call.method })
    }
    const whole = upstream.kind === 'answered' ? await readWholeAnswer(upstream, WHOLE_BYTES_MAX) : 'lost'
    const answers = typeof whole === 'string' || whole.length === 0 ? [] : (splitBatch(whole.toString('latin1')) ?? [])
    const byId = new Map(answers.map((answer) => [answer.id, answer]))
    forwarded.forEach(({ call, slot }, at) => {
      if (call.id === undefined) return
      const answer = byId.get(String(at))
      if (answer !== undefined) slots[slot] = Buffer.from(answer.withId(call.id), 'latin1')
      else
        slots[slot] = errorAnswer(
          refuseUpstream(upstream.kind === 'timeout' ? 'upstream-timeout' : 'no-upstream'),
          request.requestId,
          call.id,
        )
    })
  }

  function refusalOf(admission: Exclude<ReturnType<Access['admit']>, { ok: true }>, method: string): Refusal {
    if (!('limitName' in admission)) return refuseToken(admission.reason)
    meter.refused(admission.limitName)
    return refuseOverLimit(admission, method, clock.nowMs())
  }
}

/** A whole request refused: the status says it too. */
export function refuse(
  refusal: Refusal,
  request: Pick<RpcRequest, 'requestId'>,
  id = 'null',
  budget?: Budget,
): RpcAnswer {
  const headers: Record<string, string> = { ...JSON_TYPE }
  if (refusal.code === 'unauthorized') headers['www-authenticate'] = 'Bearer'
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds)
  if (budget !== undefined) Object.assign(headers, budgetHeaders(budget, 0))
  return { status: httpStatusOf(refusal), headers, body: errorAnswer(refusal, request.requestId, id) }
}

function errorAnswer(refusal: Refusal, requestId: string, id: string): string {
  return `{"jsonrpc":"2.0","error":${errorText(refusal, requestId)},"id":${id}}`
}

/** The budget is told on every answer, before it runs out. */
export function budgetHeaders(budget: Budget, cost: number): Record<string, string> {
  return {
    'x-ratelimit-limit': budget.limit === null ? 'unlimited' : String(Math.floor(budget.limit)),
    'x-ratelimit-remaining': budget.remaining === null ? 'unlimited' : String(budget.remaining),
    'x-ratelimit-reset': String(Math.ceil(budget.resetMs / 1000)),
    'x-ratelimit-cost': String(cost),
  }
}

function joinAnswers(answers: readonly (string | Buffer)[]): Buffer {
  const parts: Buffer[] = [Buffer.from('[')]
  answers.forEach((answer, at) => {
    if (at > 0) parts.push(Buffer.from(','))
    parts.push(typeof answer === 'string' ? Buffer.from(answer) : answer)
  })
  parts.push(Buffer.from(']'))
  return Buffer.concat(parts)
}

/** An answer that must be looked into is read whole, up to a bound; beyond it the upstream has failed us. */
const WHOLE_BYTES_MAX = 64 * 1024 * 1024
