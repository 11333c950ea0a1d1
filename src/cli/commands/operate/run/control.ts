import { join } from 'node:path'
import { ServiceError } from '../../../../core/error.ts'
import { isInstanceLocked } from '../../../../platform/files/instance-lock.ts'
import { delay, systemClock } from '../../../../platform/process/clock.ts'
import { readStopReport, type StopReport } from '../../../../processes/compose/process/stop-report.ts'
import { openControl } from '../../../control.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { locate } from '../../../locate.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { FORMER_MESSAGE, printJson, write } from '../../../output/print.ts'

export async function reload(this: CliContext, flags: CommonFlags): Promise<void> {
  using client = await openControl(this, flags)
  const response = await client.call('reload')
  if (flags.json === true) printJson(this, response, FORMER_MESSAGE)
  else for (const line of response.message) write(this, line)
}

export async function drain(this: CliContext, flags: CommonFlags & { yes?: boolean }): Promise<void> {
  using client = await openControl(this, flags)
  await confirmCut(this, flags, 'this finishes requests in flight and stops the running process')
  const draining = await client.call('drain')
  if (flags.json !== true) {
    write(this, 'draining: not ready any more; sockets close after the lame-duck time')
    if (draining.waitingRows > 0) write(this, `${draining.waitingRows} usage rows are not in the store yet`)
  }
  const { stateDir } = locate(this, flags)
  await stopped(stateDir)
  const report = draining.reportsStop ? stopReportOf(stateDir, draining.pid) : undefined
  const { keptRows = 0, lostRows = 0 } = report ?? {}
  if (flags.json === true) printJson(this, { stopped: true, keptUsageRows: keptRows, lostUsageRows: lostRows })
  else write(this, keptRows === 0 ? 'stopped' : `stopped; ${keptText(keptRows, stateDir)}`)
}

function stopReportOf(stateDir: string, pid: number): StopReport {
  const report = readStopReport({ file: (...parts) => join(stateDir, ...parts) }, pid)
  if (report === undefined)
    throw new ServiceError('stopped-early', `process ${pid} ended before everything was closed and saved`)
  if (report.lostRows > 0)
    throw new ServiceError('stopped-early', `process ${pid} has stopped; it had dropped ${report.lostRows} usage rows`)
  return report
}

function keptText(rows: number, stateDir: string): string {
  return `the store could not be written, so ${rows} usage rows are kept in ${join(stateDir, 'usage-spool')}.* and written to the store at the next start`
}

const STOP_MS_MAX = 310_000
const LOOK_MS = 100

/** Waits until the instance lock is released and the next process can start. */
async function stopped(stateDir: string): Promise<void> {
  const state = { path: stateDir, file: (...parts: string[]) => join(stateDir, ...parts) }
  const deadline = systemClock.monotonicMs() + STOP_MS_MAX
  while (isInstanceLocked(state)) {
    if (systemClock.monotonicMs() > deadline) throw new ServiceError('instance-running', 'the process is still running')
    await delay(systemClock, LOOK_MS)
  }
}
