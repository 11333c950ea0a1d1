import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import type { Head } from './bank.ts'
import type { Account } from './model.ts'
import { RecordFile, readRecords } from './record-file.ts'
import { RENT_EXEMPT_EPOCH } from './sysvars.ts'

/** The account state at the end of one block, with what is needed to go on from there. */
export type Snapshot = {
  readonly genesisHash: string
  readonly head: Head
  readonly accounts: Iterable<readonly [string, Account]>
}

const FORMAT = 1
/** Bytes of account data in one record. */
const CHUNK_BYTES = 1024 * 1024

type PackedAccount = [address: string, lamports: bigint, owner: string, data: Uint8Array, executable: boolean]
type SnapshotHeader = { format: number; genesisHash: string; head: Head }

/**
 * Writes beside the old snapshot and then takes its place, so that one whole snapshot exists at every moment. `pause` is
 * awaited between chunks: a large state must not hold up the slots. The accounts given must be a list that does not change.
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
      file.append(serialize(chunk))
      await pause()
    }
    file.append(serialize({ end: count }))
    file.sync()
  }
  renameSync(temporary, path)
  syncDirectory(dirname(path))
}

/** Throws when the file is damaged: to begin a new chain in its place would hide the loss. */
export function readSnapshot(path: string): Snapshot | undefined {
  if (!existsSync(path)) return undefined
  const records = readRecords(path)
  const first = records.next()
  const header = first.done ? undefined : (deserialize(first.value.body) as SnapshotHeader)
  if (header?.format !== FORMAT) throw new Error(`${path} is no snapshot of this chain's format`)
  const accounts: (readonly [string, Account])[] = []
  for (const { body } of records) {
    const record = deserialize(body) as PackedAccount[] | { end: number }
    if (Array.isArray(record)) accounts.push(...record.map(unpack))
    else if (record.end === accounts.length)
      return { genesisHash: header.genesisHash, head: ownedHead(header.head), accounts }
  }
  throw new Error(`${path} is damaged: it ends before its last account`)
}

function* chunksOf(accounts: Iterable<readonly [string, Account]>): Generator<PackedAccount[]> {
  let chunk: PackedAccount[] = []
  let bytes = 0
  for (const [address, { lamports, owner, data, executable }] of accounts) {
    chunk.push([address, lamports, owner, data, executable])
    bytes += data.length + 128
    if (bytes < CHUNK_BYTES) continue
    yield chunk
    chunk = []
    bytes = 0
  }
  if (chunk.length > 0) yield chunk
}

function unpack([address, lamports, owner, data, executable]: PackedAccount): readonly [string, Account] {
  return [address, { lamports, owner, data: data.slice(), executable, rentEpoch: RENT_EXEMPT_EPOCH }]
}

function ownedHead(head: Head): Head {
  return { ...head, bankHash: head.bankHash.slice() }
}

function syncDirectory(path: string): void {
  const fd = openSync(path, 'r')
  fsyncSync(fd)
  closeSync(fd)
}
