import type { UsageState } from '../../../access/usage/writer.ts'
import { messageOf } from '../../../core/error.ts'
import { writeFileAtomicSync } from '../../../platform/files/atomic.ts'
import { readIfThere } from '../../../platform/files/optional.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'

/** What a process leaves in its state folder when it has closed everything, for `sluice drain`. */
export type StopReport = {
  readonly pid: number
  /** Usage rows that the store could not take and that are on the disk. */
  readonly keptRows: number
  /** Usage rows that were dropped in this run. */
  readonly lostRows: number
}

type Folder = { file(...parts: string[]): string }

const FILE = 'last-stop.json'

export function writeStopReport(state: Folder, usage: UsageState, log: Logger): void {
  const report = { pid: process.pid, keptRows: usage.waitingRows, lostRows: usage.lostRows } satisfies StopReport
  try {
    writeFileAtomicSync(state.file(FILE), `${JSON.stringify(report)}\n`)
  } catch (error) {
    log.warn({ file: state.file(FILE), reason: messageOf(error) }, 'the report of the stop could not be written')
  }
}

/** The report of that process; undefined when it ended without one. */
export function readStopReport(state: Folder, pid: number): StopReport | undefined {
  const text = readIfThere(state.file(FILE))
  try {
    const report = JSON.parse(text ?? 'null') as StopReport | null
    return report?.pid === pid ? report : undefined
  } catch {
    return undefined
  }
}
