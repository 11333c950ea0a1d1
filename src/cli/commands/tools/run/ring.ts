import { dirname, join, resolve } from 'node:path'
import { ServiceError } from '../../../../core/error.ts'
import { type FoldSummary, foldRing } from '../../../../execution/tools/fold.ts'
import { inspectRing, type RingInspection } from '../../../../execution/tools/inspect.ts'
import { recordRing } from '../../../../execution/tools/record.ts'
import { fileError } from '../../../../platform/files/error.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { findSettings } from '../../../find-settings.ts'
import { alignColumns, printFacts, printJson, write } from '../../../output/print.ts'
import { describeLine } from './ring-text.ts'
import { watchRing } from './ring-watch.ts'

export type RingFoldFlags = CommonFlags & { readonly counters?: string; readonly top?: string }
export type RingRecordFlags = CommonFlags & {
  readonly seconds?: string
  readonly ring?: string
  readonly from?: 'oldest' | 'newest'
}
export type RingWatchFlags = CommonFlags & { readonly seconds?: string }

export async function inspectRingCommand(this: CliContext, flags: CommonFlags, path: string): Promise<void> {
  const found = await inspectRing(path)
  // Not through printJson: event names keep their case.
  if (flags.json === true) this.process.stdout.write(`${JSON.stringify(found, null, 2)}\n`)
  else printInspection(this, found)
  if (found.refused !== null) throw new ServiceError('ring-unreadable', `${path}: ${found.refused}`)
}

function printInspection(context: CliContext, found: RingInspection): void {
  const { path, form, header, contents, file_bytes, expected_bytes } = found
  printFacts(context, [
    ['file', path],
    ['form', { live: 'live ring', file: 'ring without a writer', zstd: 'compressed snapshot' }[form]],
    ['file_bytes', file_bytes],
    ['expected_bytes', expected_bytes],
    ...Object.entries(header ?? {}),
  ])
  if (contents === null) return
  const { counts, ...facts } = contents
  context.process.stdout.write('\n')
  printFacts(context, Object.entries(facts))
  context.process.stdout.write('\n')
  context.process.stdout.write(
    alignColumns([['EVENT', 'COUNT'], ...Object.entries(counts).map(([name, count]) => [name, `${count}`])]),
  )
}

export async function foldRingCommand(this: CliContext, flags: RingFoldFlags, path: string): Promise<void> {
  const stdout: NodeJS.WritableStream = this.process.stdout
  const options = { counters: numberOf(flags.counters, 1000, 10_000_000), top: numberOf(flags.top, 10, 100_000) }
  const lines = foldRing(path, options)
  for (;;) {
    const { value, done } = await lines.next()
    if (done === true) return reportLoss(this, path, value)
    const written = stdout.write(`${flags.json === true ? JSON.stringify(value) : describeLine(value)}\n`)
    // Backpressure: a slow pipe delays the fold.
    if (!written) await new Promise<void>((resolve) => void stdout.once('drain', resolve))
  }
}

/** Reports everything that is missing from the figures, with counts. */
function reportLoss(context: CliContext, path: string, { stats, fold, unknownIds, recordsOmitted }: FoldSummary): void {
  const failures: [number, string][] = [
    [stats.eventsLost, 'events are missing'],
    [stats.payloadsLost, 'payloads were overwritten'],
    [fold.unknownTypes, 'events have an unknown type and were skipped'],
    [fold.recordErrors, 'events were not recorded by the node'],
    [fold.blocksDropped, 'blocks have no figures because events are missing'],
    [fold.blocksIncomplete, 'blocks have no contention figures'],
    [unknownIds, 'consensus events refer to blocks before the recording'],
    [recordsOmitted, 'lifecycle records were dropped because the list is full'],
  ]
  if (fold.blocksFolded === 0) write(context, `${path}: no complete block`)
  for (const [count, words] of failures) if (count > 0) write(context, `${path}: ${count} ${words}`)
}

export async function recordRingCommand(this: CliContext, flags: RingRecordFlags, path: string): Promise<void> {
  const ring = flags.ring ?? (await defaultRing(this, flags))
  let isStopped = false
  this.process.once('SIGINT', () => {
    isStopped = true
  })
  const summary = await recordRing(
    {
      ring,
      file: path,
      durationMs: numberOf(flags.seconds, 10, 86_400) * 1000,
      start: flags.from === 'oldest' ? 'oldest' : 'newest-block',
    },
    { clock: systemClock, isStopped: () => isStopped },
  ).catch((error: NodeJS.ErrnoException) => {
    throw recordError(error, path)
  })
  if (flags.json === true) printJson(this, { file: path, ring, ...summary })
  else {
    write(this, `recorded ${summary.events} events of ${ring} to ${path} (${ENDED[summary.ended]})`)
    if (summary.events_lost + summary.payloads_lost > 0)
      write(
        this,
        `${summary.events_lost} events and ${summary.payloads_lost} payloads were overwritten before they could be read`,
      )
  }
}

/** File errors that the operator can fix get a message and a fix; others pass unchanged. */
function recordError(error: NodeJS.ErrnoException, path: string): unknown {
  if (error.code === 'EEXIST') {
    return new ServiceError('already-exists', `${path} already exists, or is being recorded`, {
      fix: 'Give the name of a new file; set the ring to record with --ring PATH.',
    })
  }
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') {
    const folder = dirname(resolve(path))
    return new ServiceError('not-found', `the folder ${folder} does not exist`, {
      fix: `Create it (mkdir -p ${folder}), or record to an existing folder.`,
      cause: error,
    })
  }
  return fileError(error, path)
}

const ENDED = {
  time: 'time is over',
  stopped: 'stopped',
  replaced: 'the ring was replaced by another',
  full: 'the recording reached its maximum size',
} as const

export async function watchRingCommand(this: CliContext, flags: RingWatchFlags, path?: string): Promise<void> {
  const ring = path ?? (await defaultRing(this, flags))
  const seconds = flags.seconds === undefined ? undefined : numberOf(flags.seconds, 1, 86_400)
  await watchRing(this, { ring, seconds, isJson: flags.json === true })
}

/** The ring that the execution service reads: the configured one, or the one that Sluice writes. */
async function defaultRing(context: CliContext, flags: CommonFlags): Promise<string> {
  const { config, loaded, stateDir } = await findSettings(context, flags)
  const { ring, node } = config.execution
  if (ring !== undefined) return resolve(loaded.folder, ring)
  return join(stateDir, 'ring', node === undefined ? 'monad-exec-events' : 'evm-node-events')
}

function numberOf(given: string | undefined, byDefault: number, max: number): number {
  if (given === undefined) return byDefault
  const value = Number(given)
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  throw new ServiceError('invalid-value', `"${given}" is not a number from 1 to ${max}`)
}
