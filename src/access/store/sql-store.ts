import assert from 'node:assert/strict'
import { messageOf, ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import type { SqlDatabase, SqlReader, SqlWriter } from '../../platform/db/sql.ts'
import { fileSize } from '../../platform/files/append.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { type Chain, confirmMirror, extendMirror, MIRROR_START, type MirrorPosition } from '../audit/file.ts'
import { createAuditLine, headAfter } from '../audit/line.ts'
import { insertAuditLine, readAuditLines, readAuditPage } from '../audit/rows.ts'
import { writeBackup } from '../backup/backup.ts'
import { markLateHours } from './billing/hours.ts'
import { createBillingRows } from './billing/rows.ts'
import { findRowDamage } from './check.ts'
import { readMeta, writeMeta } from './meta.ts'
import { readRowsOf } from './page.ts'
import { pruneUsage } from './prune-usage.ts'
import { createRecordReader, createRecordWriter } from './record-access.ts'
import type { TableRows } from './rows.ts'
import type { AccessStore, AccessTransaction, AccessView, AuditEntry, ChangeContext } from './store.ts'
import { LAST_USED_TABLE, MIRROR_TABLE, type MirrorRow, SHARED_KEY_TABLE } from './tables.ts'
import { advanceUsageMark } from './usage-marks.ts'
import {
  addUsage,
  readHourUsage,
  readMethodUsage,
  readMethodUsagePages,
  readUnitsSince,
  readUsage,
  readUsagePages,
  setLastUsed,
} from './usage-rows.ts'

export type SqlStoreOptions = {
  /** The latest version of the tables that this process supports. */
  readonly schemaVersion: number
  readonly audit: AuditOptions
}

export type AuditOptions = {
  /** The audit file of this state folder. */
  readonly file: string
  /** Identifies this file among those of other machines with the same store. */
  readonly mirror: string
  /** Version of the tool, written into each line. */
  readonly toolVersion: string
}

export type SqlStoreDeps = {
  readonly database: SqlDatabase
  readonly rows: TableRows
  readonly random: Random
  readonly log: Logger
}

const SHARED_KEY_BYTES = 32
/** The version of the tables that has those of billing. */
const BILLING_VERSION = 5

/** The access store on both engines, in the common subset of their SQL. Takes ownership of the database. */
export function createSqlStore(options: SqlStoreOptions, { database, rows, random, log }: SqlStoreDeps): AccessStore {
  const { audit } = options
  const meta = (on: SqlReader) => readMeta(on, rows, { ...options, store: database })

  function view(on: SqlReader): AccessView {
    return {
      ...createRecordReader(on, rows),
      revision: async () => (await meta(on)).revision,
      auditLines: (fromSeq) => readAuditLines(on, fromSeq),
      async auditHead() {
        const { auditSeq, auditHash } = await meta(on)
        return { seq: auditSeq, hash: auditHash }
      },
      auditPage: (request) => readAuditPage(on, request),
      async auditMirror() {
        const { seq, bytes, remadeAt } = await mirrorRow(on)
        return { file: audit.file, seq, bytes, remadeAt }
      },
      usagePages: (selection) => readUsagePages(on, selection),
      methodUsagePages: (selection) => readMethodUsagePages(on, selection),
    }
  }

  async function mirrorRow(on: SqlReader): Promise<MirrorRow> {
    const of = rows(MIRROR_TABLE)
    const [row] = await on.rows(of.select('WHERE mirror = ?'), [audit.mirror])
    return row ? of.decode(row) : { mirror: audit.mirror, remadeAt: null, ...MIRROR_START }
  }

  return {
    name: database.name,
    ...view(database),
    read: (work) => database.read((reader) => work(view(reader))),

    change: (context, work) => change(context, (records) => work(records)),
    billing: createBillingRows({ database, rows, change }),

    addUsage: (used, lastUsed, mark) =>
      database.count(async (tx) => {
        if (mark !== undefined && !(await advanceUsageMark(tx, rows, mark))) return
        await addUsage(tx, used)
        if (options.schemaVersion >= BILLING_VERSION) await markLateHours(tx, used)
        await setLastUsed(tx, rows, lastUsed)
      }, mark),
    usage: (filter) => readUsage(database, filter),
    methodUsage: (filter) => readMethodUsage(database, filter),
    hourUsage: (hour) => readHourUsage(database, hour),
    unitsSince: (fromMs) => readUnitsSince(database, fromMs),
    pruneUsage: (beforeMs, hoursMax, signal) =>
      pruneUsage(database, { beforeMs, hoursMax, signal, hasBilling: options.schemaVersion >= BILLING_VERSION }),
    async lastUsed(tokenId) {
      const of = rows(LAST_USED_TABLE)
      const [row] = await database.rows(of.select('WHERE token_id = ?'), [tokenId])
      return row && of.decode(row).at
    },
    lastUsedOf: async (tokenIds) => {
      const of = rows(LAST_USED_TABLE)
      const found = await readRowsOf(tokenIds, async (list) =>
        (await database.rows(of.select(`WHERE token_id IN ${list.sql}`), list.values)).map(of.decode),
      )
      return new Map(found.map(({ tokenId, at }) => [tokenId, at]))
    },

    async sharedKey(purpose) {
      const of = rows(SHARED_KEY_TABLE)
      const find = async (on: SqlReader) => {
        const [row] = await on.rows(of.select('WHERE purpose = ?'), [purpose])
        return row && of.decode(row).keyHex
      }
      const make = (tx: SqlWriter) => {
        const keyHex = Buffer.from(random.bytes(SHARED_KEY_BYTES)).toString('hex')
        return tx.run(of.insert, of.encode({ purpose, keyHex })).then(() => keyHex)
      }
      const keyHex =
        (await find(database)) ?? (await database.change(async (tx) => (await find(tx)) ?? (await make(tx))))
      return new Uint8Array(Buffer.from(keyHex, 'hex'))
    },

    follow,
    backup: (put, facts) =>
      database.read((on) => writeBackup(on, put, { ...facts, ...options, rows, store: database })),
    async integrity(onChecked) {
      const ofEngine = await database.damage().catch((error: unknown) => [messageOf(error)])
      return [...ofEngine, ...(await findRowDamage(database, rows, { ...options, onChecked }))]
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }

  /** `work` gets the records, and the transaction of the database for rows that are not records. */
  async function change<T>(
    context: ChangeContext,
    work: (records: AccessTransaction, tx: SqlWriter) => Promise<{ audit: AuditEntry; result: T }>,
  ): Promise<T> {
    const { result, position } = await database.change(async (tx) => {
      const before = await meta(tx)
      const writer = createRecordWriter(tx, rows, before)
      const { audit: entry, result } = await whileOpen(writer, (records) => work(records, tx))

      const head = { seq: before.auditSeq, hash: before.auditHash }
      const line = createAuditLine(head, { entry, context, version: audit.toolVersion })
      const newHead = headAfter(head.seq + 1, line)
      await insertAuditLine(tx, newHead.seq, line)
      const position = await extend(tx, { head, lines: (fromSeq) => readAuditLines(tx, fromSeq) })
      await writeMeta(tx, rows, {
        ...before,
        revision: before.revision + 1,
        auditSeq: newHead.seq,
        auditHash: newHead.hash,
        tallies: writer.tallies(),
      })
      return { result, position }
    })
    await confirmMirror(audit.file, position).catch((error: unknown) => {
      log.warn(
        { file: audit.file, reason: messageOf(error) },
        'the audit file has no newline after its last line until the next change',
      )
    })
    return result
  }

  async function extend(tx: SqlWriter, chain: Chain): Promise<MirrorPosition> {
    const recorded = await mirrorRow(tx)
    const isGone = recorded.seq > 0 && (await fileSize(audit.file)) === undefined
    if (isGone) log.warn({ file: audit.file }, 'the audit file was missing and is rewritten from the store')
    const position = await extendMirror(audit.file, isGone ? MIRROR_START : recorded, chain)
    if ('lost' in position) throw lostChanges(database, audit.file, position.lost)
    const of = rows(MIRROR_TABLE)
    await tx.run(of.upsert, of.encode({ ...recorded, ...position, ...(isGone ? { remadeAt: position.seq } : {}) }))
    return position
  }

  async function follow(onMoved: (revision: number) => void): Promise<AsyncDisposable> {
    let last: string | undefined
    let checking: Promise<void> | undefined
    let isDirty = false
    let failing = false
    let closed = false

    async function checkRevision(): Promise<void> {
      while (isDirty && !closed) {
        isDirty = false
        try {
          // In a transaction, because BEGIN detects a dead connection soonest.
          const { revision, auditHash } = await database.read(meta)
          if (failing) log.info({ store: database.name }, 'the store can be read again')
          failing = false
          // Not by the revision: a store that was replaced by a copy, and changed since, may have the same one again.
          if (auditHash !== last && !closed) onMoved(revision)
          last = auditHash
        } catch (err) {
          if (!failing && !closed) log.warn({ err, store: database.name }, 'the store cannot be read')
          failing = true
        }
      }
      checking = undefined
    }

    function check(): Promise<void> {
      isDirty = true
      checking ??= checkRevision()
      return checking
    }

    const watching = await database.watch(() => void check())
    await check()
    return {
      async [Symbol.asyncDispose]() {
        closed = true
        await watching[Symbol.asyncDispose]()
      },
    }
  }
}

/** Gives the records to `work`; a later `put` through them fails. */
async function whileOpen<T>(records: AccessTransaction, work: (records: AccessTransaction) => Promise<T>): Promise<T> {
  let isOpen = true
  try {
    return await work({
      get: (kind, id) => records.get(kind, id),
      find: (kind, where) => records.find(kind, where),
      page: (kind, request) => records.page(kind, request),
      names: (kind, range) => records.names(kind, range),
      async put(kind, record) {
        assert(isOpen, 'a record was put after its change ended')
        await records.put(kind, record)
      },
    })
  } finally {
    isOpen = false
  }
}

/** The audit file has committed changes that the store does not have: the store was rolled back, by damage or by an older backup. */
export function lostChanges(store: { name: string; restoreAdvice: string }, file: string, seq: number): ServiceError {
  return new ServiceError(
    'store-corrupt',
    `${store.name} has lost changes: line ${seq} of ${file} and those after it are not in the store`,
    {
      fields: { store: store.name, file, line: seq },
      fix: `If the store was restored, or has failed over, continue with it and move this log away: mv ${file} ${file}.old. Otherwise: ${store.restoreAdvice}`,
    },
  )
}
