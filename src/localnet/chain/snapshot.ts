import { existsSync, rmSync } from 'node:fs'
import { deserialize, serialize } from 'node:v8'
import { renameDurably } from '../../platform/files/atomic.ts'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { fromAccount, textKey, toAccount } from '../engine/values.ts'
import { type AddressedAccount, packAccounts, unpackAccounts } from './account-codec.ts'
import type { Head } from './bank.ts'
import type { Account } from './model.ts'
import { RecordFile, readRecords } from './record-file.ts'

/** The accounts at the end of one block and the values needed to continue the chain from it. */
export type Snapshot = {
  readonly genesisHash: string
  readonly head: Head
  readonly accounts: Iterable<readonly [string, Account]>
}

const FORMAT = 1
/** Bytes of account data in one record. */
const CHUNK_BYTES = 1024 * 1024

type SnapshotHeader = { format: number; genesisHash: string; head: Head }

/**
 * Writes a temporary file and renames it over the old snapshot, so that a complete snapshot exists at any time. `pause`
 * is awaited between chunks, because a large state must not delay the slots. The list of accounts must not change.
 */
export async function writeSnapshot(path: string, snapshot: Snapshot, pause: () => Promise<void>): Promise<void> {
  const temporary = `${path}.new`
  rmSync(temporary, { force: true })
  {
    using file = RecordFile.open(temporary, 0)
    const header: SnapshotHeader = { format: FORMAT, genesisHash: snapshot.genesisHash, head: snapshot.head }
    file.append(serialize(header))
    let count = 0
    for (const chunk of chunksOf(snapshot.accounts)) {
      count += chunk.length
      file.append(packAccounts(chunk))
      await pause()
    }
    file.append(endRecord(count))
    file.sync()
  }
  await renameDurably(temporary, path)
}

/** Throws when the file is damaged: starting a new chain in its place would hide the loss. */
export function readSnapshot(path: string): Snapshot | undefined {
  if (!existsSync(path)) return undefined
  const records = readRecords(path)
  const first = records.next()
  const header = first.done ? undefined : (deserialize(first.value.body) as SnapshotHeader)
  if (header?.format !== FORMAT) throw new Error(`${path} is no snapshot of this chain's format`)
  const accounts: (readonly [string, Account])[] = []
  let last: Uint8Array | undefined
  for (const { body } of records) {
    // All records but the last hold accounts; the last holds their count.
    if (last)
      for (const [address, account] of unpackAccounts(last))
        if (account) accounts.push([textKey(address), toAccount(account)])
    last = body
  }
  if (!isEnd(last, accounts.length)) throw new Error(`${path} is damaged: it ends before its last account`)
  return { genesisHash: header.genesisHash, head: ownedHead(header.head), accounts }
}

function endRecord(count: number): Uint8Array {
  return new TextEncoder().encode(`end of ${count} accounts`)
}

function isEnd(record: Uint8Array | undefined, count: number): boolean {
  return record !== undefined && Buffer.compare(record, endRecord(count)) === 0
}

function* chunksOf(accounts: Iterable<readonly [string, Account]>): Generator<AddressedAccount[]> {
  let chunk: AddressedAccount[] = []
  let bytes = 0
  for (const [address, account] of accounts) {
    chunk.push([decodeBase58(address), fromAccount(account)])
    bytes += account.data.length + 128
    if (bytes < CHUNK_BYTES) continue
    yield chunk
    chunk = []
    bytes = 0
  }
  if (chunk.length > 0) yield chunk
}

function ownedHead(head: Head): Head {
  return { ...head, bankHash: new Uint8Array(head.bankHash) }
}
