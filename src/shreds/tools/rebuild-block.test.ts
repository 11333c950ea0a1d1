import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LEADER, VERSION } from '../../../test/support/shreds/rig.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { encodeEntries } from '../../solana/shred/entry.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import { type DataShred, parseShred } from '../../solana/shred/shred.ts'
import { rebuildBlock } from './rebuild-block.ts'

function shredsOf(batches: readonly Uint8Array[]): DataShred[] {
  const chainedRoot = new Uint8Array(32)
  const { sets } = makeShreds({ slot: 10, parentSlot: 9, version: VERSION, batches, chainedRoot, leader: LEADER })
  return sets.flatMap(({ data }) =>
    data.map((packet) => {
      const parse = parseShred(packet)
      assert.ok(parse.ok && parse.shred.kind === 'data')
      return parse.shred
    }),
  )
}

test('an aborted slot ends with a batch without entries, which is decodable and leaves the blockhash', () => {
  const hash = new Uint8Array(32).fill(7)
  const tick = encodeEntries([{ numHashes: 1n, hash, transactions: [] }])
  const { summary } = rebuildBlock(shredsOf([tick, new Uint8Array(8)]), 9, {})
  assert.deepEqual(
    [summary.entries, summary.undecodable, summary.markers, summary.blockhash],
    [1, 0, 0, encodeBase58(hash)],
  )
  const empty = rebuildBlock(shredsOf([new Uint8Array(8)]), 9, {}).summary
  assert.deepEqual([empty.entries, empty.undecodable, empty.blockhash], [0, 0, undefined])
})
