import { messageOf } from '../../core/error.ts'
import { openCheckpointFile } from '../../platform/files/checkpoint-file.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { UsageRow } from '../store/model.ts'
import type { LastUse, UsageBatch } from './queue.ts'

/**
 * Usage that is not in the store, on the disk of the state folder. `planned` are batches with numbers, the first of which is `seq`; each may have been
 * written or not, and the store knows the number of the last one it has of this `id`. What is in `open` has never been sent.
 */
export type SpooledUsage = {
  readonly id: string
  readonly seq: number
  readonly planned: readonly UsageBatch[]
  readonly open: UsageBatch
}

export type UsageSpool = AsyncDisposable & {
  /** The files, for messages. */
  readonly name: string
  /** What the process before this one left. */
  readonly found: SpooledUsage | undefined
  /** Resolves when it is on the disk. */
  save(usage: SpooledUsage): Promise<void>
  /** Nothing is left to be written. */
  clear(): Promise<void>
}

/** Each of two files: about 10,000 rows fit without any free space on the disk. */
const RESERVED_BYTES = 1024 * 1024
/** 262,144 rows of the queue and as many of the batches under way, at about 120 bytes. */
const SPOOL_BYTES_MAX = 128 * 1024 * 1024
/** Rows serialized between two looks at the time slice. */
const SLICE_ROWS = 500

/** `path` is in the state folder, whose lock keeps out a second process. */
export async function openUsageSpool(path: string, { log }: { readonly log: Logger }): Promise<UsageSpool> {
  const file = await openCheckpointFile(path, { reservedBytes: RESERVED_BYTES, contentBytesMax: SPOOL_BYTES_MAX })
  if (file.isDamaged)
    log.error({ file: file.name }, 'the file with usage that was not in the store is damaged: its usage cannot be read')
  return {
    name: file.name,
    found: file.found === '' ? undefined : parseSpool(file.found),
    save: async (usage) => file.save(await printSpool(usage)),
    async clear() {
      await file.save('').catch(async (error: unknown) => {
        log.warn({ file: file.name, reason: messageOf(error) }, 'the spool of usage is truncated')
        await file.discard()
      })
    },
    [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
  }
}

/** Lines of JSON: the head, then one line per group of rows. In time slices, because the queue may be long. */
async function printSpool({ id, seq, planned, open }: SpooledUsage): Promise<string> {
  const slices = createTimeSlices()
  const lines = [JSON.stringify({ id, seq, planned: planned.length })]
  for (const { rows, used } of [...planned, open]) {
    const parts: string[] = []
    for (let at = 0; at === 0 || at < Math.max(rows.length, used.length); at += SLICE_ROWS) {
      parts.push(JSON.stringify([rows.slice(at, at + SLICE_ROWS).map(packRow), used.slice(at, at + SLICE_ROWS)]))
      if (slices.isSpent()) await slices.yield()
    }
    lines.push(`[${parts.join(',')}]`)
  }
  return lines.join('\n')
}

/** Methods are null where there are none but bytes follow. Files from before bytes were counted have no bytes. */
type PackedRow = [string, number, UsageRow['interface'], number, number, number, (UsageRow['methods'] | null)?, number?]
type PackedPart = [PackedRow[], LastUse]

/** The checkpoint file has checked that this is what was saved. */
function parseSpool(text: string): SpooledUsage {
  const [head = '', ...lines] = text.split('\n')
  const { id, seq, planned } = JSON.parse(head) as { id: string; seq: number; planned: number }
  const batches = lines.map((line): UsageBatch => {
    const parts = JSON.parse(line) as PackedPart[]
    return { rows: parts.flatMap(([rows]) => rows.map(unpackRow)), used: parts.flatMap(([, used]) => used) }
  })
  return { id, seq, planned: batches.slice(0, planned), open: batches[planned] ?? { rows: [], used: [] } }
}

function packRow(row: UsageRow): PackedRow {
  const { subscriptionId, hour, interface: at, calls, units, refused, methods, bytes } = row
  const packed: PackedRow = [subscriptionId, hour, at, calls, units, refused]
  if (bytes !== 0) packed.push(methods ?? null, bytes)
  else if (methods !== undefined) packed.push(methods)
  return packed
}

function unpackRow([subscriptionId, hour, at, calls, units, refused, methods, bytes = 0]: PackedRow): UsageRow {
  const row = { subscriptionId, hour, interface: at, calls, units, refused, bytes }
  return methods === undefined || methods === null ? row : { ...row, methods }
}
