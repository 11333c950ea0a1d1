import assert from 'node:assert/strict'
import { test } from 'node:test'
import { account, address, createChainDouble } from '../../../test/support/solana/chain-double.ts'
import { framePayload } from '../../platform/ws/frame.ts'
import { SYSVAR_OWNER, TOKEN_PROGRAM } from '../chain/addresses.ts'
import type { Account } from '../chain/model.ts'
import type { DataSlice } from '../rpc/encode-account.ts'
import { SYSVAR } from '../rpc/parsed/program-ids.ts'
import { createAnnouncer } from './announce.ts'
import { Registry } from './registry.ts'

/** A slot history without bits; each access to its data is counted, as the chain encodes it each time. */
function countedSlotHistory(): { readonly history: Account; readonly reads: () => number } {
  let reads = 0
  const data = new Uint8Array(17).with(9, 5)
  const history = account({ owner: SYSVAR_OWNER })
  Object.defineProperty(history, 'data', {
    get: () => {
      reads += 1
      return data
    },
  })
  return { history, reads: () => reads }
}

/** Data of the notifications of subscriptions that differ in their data slice, and how often the data was read for them. */
function notify(to: string, state: Account, slices: readonly (DataSlice | undefined)[]): unknown[] {
  const { chain, produce, write } = createChainDouble()
  const registry = new Registry()
  const shown: unknown[] = []
  const subscriber = {
    sendFrame: (frame: Buffer) => {
      const { params } = JSON.parse(framePayload(frame).toString()) as {
        params: { result: { value: { data: unknown } } }
      }
      shown.push(params.result.value.data)
    },
    forget: () => {},
  }
  for (const dataSlice of slices) {
    const request = {
      kind: 'account',
      address: to,
      commitment: 'processed',
      encoding: 'jsonParsed',
      dataSlice,
    } as const
    registry.subscribe(request, subscriber)
  }
  const { announce } = createAnnouncer({ chain, registry, nowMs: () => 0 })
  announce({ kind: 'frozen', block: produce({ systemWrites: [write(to, state)] }) })
  return shown
}

test('an account is parsed once for all subscriptions to it', () => {
  const slices = Array.from({ length: 50 }, (_, offset) => ({ offset, length: 1 }))
  const one = countedSlotHistory()
  const [expected] = notify(SYSVAR.slotHistory, one.history, [undefined])
  const info = { bits: '', nextSlot: 5 }
  assert.deepEqual(expected, { parsed: { info, type: 'slotHistory' }, program: 'sysvar', space: 17 })
  const many = countedSlotHistory()
  assert.deepEqual(
    notify(SYSVAR.slotHistory, many.history, slices),
    slices.map(() => expected),
  )
  assert.equal(many.reads(), one.reads())
})

test('data that cannot be parsed is sliced for each subscription', () => {
  const state = account({ data: Buffer.from('abc') })
  const slices = [undefined, { offset: 1, length: 1 }, { offset: 1, length: 2 }]
  assert.deepEqual(notify(address('alice'), state, slices), [
    ['YWJj', 'base64'],
    ['Yg==', 'base64'],
    ['YmM=', 'base64'],
  ])
})

test('programSubscribe with jsonParsed lacks the token accounts that cannot be parsed', () => {
  const { chain, produce, write } = createChainDouble()
  const registry = new Registry()
  const notified: string[] = []
  const { announce } = createAnnouncer({ chain, registry, nowMs: () => 0 })
  const subscribe = (programId: string, encoding: 'base64' | 'jsonParsed') => {
    const request = { kind: 'program', programId, commitment: 'processed', encoding } as const
    const sendFrame = () => void notified.push(`${programId} ${encoding}`)
    registry.subscribe(
      { ...request, dataSlice: undefined, filters: [], withContext: false },
      { sendFrame, forget() {} },
    )
  }
  const other = address('program')
  for (const programId of [TOKEN_PROGRAM, other])
    for (const encoding of ['base64', 'jsonParsed'] as const) subscribe(programId, encoding)
  // Its mint does not exist.
  const data = new Uint8Array(165).with(108, 1)
  const writes = [TOKEN_PROGRAM, other].map((owner) => write(address(`of ${owner}`), account({ owner, data })))
  announce({ kind: 'frozen', block: produce({ systemWrites: writes }) })
  assert.deepEqual(notified, [`${TOKEN_PROGRAM} base64`, `${other} base64`, `${other} jsonParsed`])
})
