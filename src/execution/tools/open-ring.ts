import { ServiceError } from '../../core/error.ts'
import type { EventBatch } from '../../evm/ring/event-batch.ts'
import { HEADER_BYTES, type RingControl, type RingRefusal, readControl } from '../../evm/ring/layout.ts'
import { createRingReader, type GapCause, type RingReader } from '../../evm/ring/reader.ts'
import type { RingSource } from '../../evm/ring/source.ts'
import { isHeldByWriter } from '../../platform/ring-file/lock.ts'
import { openRingFile, type RingFile } from '../../platform/ring-file/reader.ts'
import { isCompressed, openCompressedSnapshot } from '../../platform/ring-file/snapshot.ts'

/** The form of a ring: written by a node, a file that is no longer written, or a compressed snapshot. */
export type RingForm = 'live' | 'file' | 'zstd'

export type ToolRing = Disposable & { readonly path: string; readonly form: RingForm; readonly file: RingFile }

/** Opens the ring at a path. Throws a ServiceError when there is none or it cannot be read. */
export async function openToolRing(path: string): Promise<ToolRing> {
  try {
    const form: RingForm = isCompressed(path) ? 'zstd' : isHeldByWriter(path) === true ? 'live' : 'file'
    const file =
      form === 'zstd' ? await openCompressedSnapshot(path) : openRingFile(path, { isSnapshot: form === 'file' })
    if (file === undefined) throw new ServiceError('not-found', `there is no file ${path}`, { fix: 'Check the path.' })
    return { path, form, file, [Symbol.dispose]: () => file.close() }
  } catch (error) {
    if (error instanceof ServiceError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new ServiceError('ring-unreadable', `${path} cannot be read: ${reason}`, { cause: error })
  }
}

/** A reader that starts at the oldest complete block. Throws a ServiceError for another format. */
export function readToolRing({ path, file }: ToolRing): RingReader {
  const created = createRingReader(file, 'oldest')
  if (!created.ok) throw refusalError(path, created)
  return created.reader
}

export function refusalError(path: string, { reason, message }: RingRefusal): ServiceError {
  return new ServiceError('ring-unreadable', `${path}: ${message}`, { fields: { reason } })
}

export type ReadPart =
  | { readonly kind: 'events'; readonly batch: EventBatch }
  | { readonly kind: 'gap'; readonly from: number; readonly to: number; readonly cause: GapCause }

/** Reads a ring up to its current end; a live ring is not followed beyond it. */
export function* readToEnd(reader: RingReader, source: RingSource): Generator<ReadPart> {
  const { lastSeqno } = controlOf(source)
  while (reader.cursor < lastSeqno) {
    const result = reader.poll(0)
    if (result.kind === 'events') yield { kind: 'events', batch: reader.batch }
    else if (result.kind === 'gap') yield result
    // The next event is being written: the current end.
    else return
  }
}

function controlOf(source: RingSource): RingControl {
  const header = new Uint8Array(HEADER_BYTES)
  source.read(0, header, 0, HEADER_BYTES)
  return readControl(header)
}
