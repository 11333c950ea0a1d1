import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNodeSha256 } from '../../solana/crypto/node-sha256.ts'
import { createLeafHasher } from '../../solana/shred/fec-set-proofs.ts'
import { SIGNATURE_BYTES } from '../../solana/shred/shred.ts'
import { FEC_SETS_MAX, FecSets, SET_STATE } from './fec-sets.ts'

const newSets = () => {
  const sha256 = createNodeSha256()
  return new FecSets(sha256, createLeafHasher(sha256))
}

const signatureOf = (number: number) => {
  const bytes = new Uint8Array(SIGNATURE_BYTES)
  new DataView(bytes.buffer).setUint32(0, number)
  return bytes
}

test('a full ring replaces the oldest signed set, and never a pending one', () => {
  const sets = newSets()
  const add = (number: number) => sets.add(number, 0, signatureOf(number), 0)
  const find = (number: number, state: number) => sets.find(number, 0, signatureOf(number), 0, state)
  const pending = add(0)
  for (let number = 1; number < FEC_SETS_MAX; number++) sets.states[add(number)] = SET_STATE.signed
  assert.notEqual(find(1, SET_STATE.signed), -1)
  const more = 10
  for (let number = 0; number < more; number++) sets.states[add(FEC_SETS_MAX + number)] = SET_STATE.signed
  assert.equal(find(0, SET_STATE.pending), pending)
  for (let number = 1; number <= more; number++) assert.equal(find(number, SET_STATE.signed), -1)
  assert.notEqual(find(more + 1, SET_STATE.signed), -1)
  assert.notEqual(find(FEC_SETS_MAX + more - 1, SET_STATE.signed), -1)
})

test('a set is found by slot, index and signature together, among others of its chain', () => {
  const sets = newSets()
  const first = sets.add(5, 1, signatureOf(1), 0)
  const second = sets.add(5, 1, signatureOf(2), 0)
  // Slots this far apart share a chain.
  const far = sets.add(5 + FEC_SETS_MAX, 1, signatureOf(1), 0)
  assert.equal(sets.find(5, 1, signatureOf(1), 0, SET_STATE.pending), first)
  assert.equal(sets.find(5 + FEC_SETS_MAX, 1, signatureOf(1), 0, SET_STATE.pending), far)
  sets.remove(second)
  assert.equal(sets.find(5, 1, signatureOf(2), 0, SET_STATE.pending), -1)
  assert.equal(sets.find(5, 1, signatureOf(1), 0, SET_STATE.pending), first)
})
