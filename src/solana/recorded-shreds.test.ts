import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { decodeBase58 } from './crypto/base58.ts'
import { importPublicKey } from './crypto/ed25519.ts'
import { isCompleteSlot, joinBatches } from './shred/deshred.ts'
import { decodeBatch } from './shred/entry.ts'
import { isSignedBy, rootOf } from './shred/merkle.ts'
import { recoverFecSet } from './shred/recover.ts'
import { type DataShred, parseShred, type Shred } from './shred/shred.ts'
import { verifySignatures } from './transaction/transaction.ts'

/**
 * Archives recorded from a public network, if present beside the checkout: Unix `ar`, one shred per member, the leader's key as the last part
 * of the file name (`kind-KEY.ar`). One is Firedancer's chained_resigned fixture: 307 shreds of testnet slot 385970984 with 49 entries and 63
 * transactions.
 */
const folder = join(import.meta.dirname, '../../../shared/data/shreds')
const archives = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.ar')) : []

test('recorded shreds of a public network are signed, recoverable, and form complete slots', async (t) => {
  t.diagnostic(archives.length === 0 ? 'no recorded archive of shreds found' : archives.join())
  for (const name of archives) {
    await t.test(name, (each) => {
      const shreds = readArchive(readFileSync(join(folder, name))).map(parsed)
      const leader = importPublicKey(decodeBase58(basename(name, '.ar').split('-').at(-1) ?? ''))
      assert.ok(leader !== undefined)
      for (const shred of shreds) assert.ok(isSignedBy(shred, rootOf(shred), leader))

      const data = [...setsOf(shreds).values()].flatMap((set) => recoverWithout(set))
      data.sort((a, b) => a.index - b.index)
      assert.ok(isCompleteSlot(data))
      const counts = { entries: 0, transactions: 0 }
      for (const batch of joinBatches(data)) {
        const decoded = decodeBatch(batch.bytes)
        assert.ok(decoded.ok, decoded.ok ? '' : decoded.reason)
        if (decoded.kind === 'marker') continue
        counts.entries += decoded.entries.length
        for (const { transactions } of decoded.entries) {
          counts.transactions += transactions.length
          for (const transaction of transactions) assert.ok(verifySignatures(transaction))
        }
      }
      each.diagnostic(`${shreds.length} shreds, ${counts.entries} entries, ${counts.transactions} transactions`)
      if (name.startsWith('chained_resigned-FT9Q')) assert.deepEqual(counts, { entries: 49, transactions: 63 })
    })
  }
})

function parsed(packet: Uint8Array): Shred {
  const result = parseShred(packet)
  assert.ok(result.ok, result.ok ? '' : result.reason)
  return result.shred
}

function setsOf(shreds: Shred[]): Map<number, Shred[]> {
  return Map.groupBy(shreds, (shred) => shred.fecSetIndex)
}

/** Removes as many data shreds as the coding shreds can replace; they must be recovered unchanged. */
function recoverWithout(set: Shred[]): readonly DataShred[] {
  const code = set.filter((shred) => shred.kind === 'code')
  const data = set.filter((shred) => shred.kind === 'data')
  const result = recoverFecSet([...code, ...data.slice(code.length)])
  assert.ok(result.ok, result.ok ? '' : result.reason)
  for (const shred of data) {
    const recovered: DataShred | undefined = result.data.find((each) => each.index === shred.index)
    assert.ok(recovered !== undefined)
    assert.deepEqual(
      recovered.bytes.subarray(0, shred.layout.proofAt + 120),
      shred.bytes.subarray(0, shred.layout.proofAt + 120),
    )
  }
  return result.data
}

function readArchive(file: Buffer): Buffer[] {
  assert.equal(file.toString('latin1', 0, 8), '!<arch>\n')
  const members: Buffer[] = []
  for (let at = 8; at + 60 <= file.length; ) {
    const size = Number(file.toString('latin1', at + 48, at + 58))
    members.push(file.subarray(at + 60, at + 60 + size))
    at += 60 + size + (size % 2)
  }
  return members
}
