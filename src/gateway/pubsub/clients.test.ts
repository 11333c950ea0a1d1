import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { BUILT_IN_PLANS } from '../../access/plan.ts'
import { createManualClock } from '../../core/clock.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import { createPubSubClients, type PubSubClientsDeps } from './clients.ts'
import type { AdmittedHandshake } from './handshake.ts'

/** Clients of the given tokens. The look-up of a token takes 20 microseconds. */
function connect(tokens: readonly string[]) {
  let nowMs = 0
  let next: (() => void) | undefined
  const renewed: string[] = []
  const revoked = new Set<string>()
  const closed: string[] = []
  const callerOf = (tokenSha256: string) =>
    ({
      ok: true,
      tokenSha256,
      subscription: { id: 'sub' },
      limits: BUILT_IN_PLANS.starter,
      nodeUser: { subscriptionId: 'sub', mayUseShared: true },
    }) as unknown as Caller
  const access = {
    renew(token: string) {
      nowMs += 0.02
      renewed.push(token)
      return revoked.has(token) ? { ok: false, reason: 'revoked' } : callerOf(token)
    },
    refuseWithoutNode: () => undefined,
  } as unknown as Access
  const count = { inc() {}, dec() {} }
  const clients = createPubSubClients({
    access,
    clock: createManualClock(),
    upstreams: { usesShared: () => true },
    connections: { enter: () => () => {} },
    meter: { open: count },
    freeMessages: { charge: () => 0 },
    turns: { nowMs: () => nowMs, nextTurn: (run: () => void) => void (next = run) },
  } as unknown as PubSubClientsDeps)
  for (const token of tokens) {
    const onClose: ((code: number, message: string) => void)[] = []
    const connection = {
      isOpen: true,
      onMessage() {},
      onSent() {},
      onClose: (listener: (typeof onClose)[number]) => void onClose.push(listener),
      close(code: number, message: string) {
        closed.push(`${token} ${code}`)
        for (const listener of onClose) listener(code, message)
      },
    } as unknown as WsConnection
    const handshake = { caller: callerOf(token), permit: { release() {} }, requestId: '', wantsGaps: false }
    clients.serve(connection, { ...handshake, remoteAddress: '' } as unknown as AdmittedHandshake)
  }
  return {
    clients,
    renewed,
    revoked,
    closed,
    /** How long the next turn of the event loop takes; undefined where nothing is left. */
    turn(): number | undefined {
      const run = next
      next = undefined
      const fromMs = nowMs
      run?.()
      return run && nowMs - fromMs
    },
    nowMs: () => nowMs,
  }
}

test('a change of the store with 10,000 connected tokens takes no turn of the event loop for itself', () => {
  const tokens = Array.from({ length: 10_000 }, (_, at) => `token ${at}`)
  const { clients, renewed, revoked, closed, turn, nowMs } = connect(tokens)
  revoked.add('token 9999')
  clients.renewAll()
  assert.ok(nowMs() < 10, `${nowMs()} ms`)
  for (let ms = turn(); ms !== undefined; ms = turn()) assert.ok(ms < 20, `${ms} ms`)
  assert.deepEqual(renewed, tokens)
  assert.deepEqual(closed, ['token 9999 4401'])
})

test('a token is looked up once for all of its connections, and not any more when they are closed', () => {
  const { clients, renewed, revoked, closed } = connect(['a', 'b', 'a'])
  clients.renewAll()
  assert.deepEqual(renewed.splice(0), ['a', 'b'])
  revoked.add('a')
  clients.renewAll()
  assert.deepEqual(closed, ['a 4401', 'a 4401'])
  renewed.length = 0
  clients.renewAll()
  assert.deepEqual(renewed, ['b'])
})
