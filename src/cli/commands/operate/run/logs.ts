import { ServiceError } from '../../../../core/error.ts'
import type { LogRequest } from '../../../../processes/compose/process/log-lines.ts'
import { openControl } from '../../../control.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { readableLine } from '../../../output/log-line.ts'
import { write } from '../../../output/print.ts'

export type TailFlags = CommonFlags & {
  readonly sub?: string
  readonly request?: string
  readonly level?: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'
  readonly lines?: string
  readonly follow?: boolean
}

const LINES_DEFAULT = 20
/** Lines that the process keeps in memory. */
const LINES_MAX = 1000

/** Prints log lines of the running process; with `--follow` until Ctrl-C or the end of the process. */
export async function tailLogs(this: CliContext, flags: TailFlags): Promise<void> {
  const lines = flags.lines === undefined ? LINES_DEFAULT : Number(flags.lines)
  if (!Number.isSafeInteger(lines) || lines < 0 || lines > LINES_MAX)
    throw new ServiceError('invalid-value', `"${flags.lines}" is not a number of lines from 0 to ${LINES_MAX}`)
  const { process } = this
  const stdout: NodeJS.WritableStream = process.stdout
  using client = await openControl(this, flags)
  const { sub, level, request: requestId } = flags
  const request: LogRequest = { sub, level, request: requestId, lines, follow: flags.follow === true }
  // With --sub the field would be the same in every line.
  const hidden = flags.sub === undefined ? [] : ['subscription', 'customer', 'subscription_name', 'customer_name']
  let hasLeft = false
  let printed = 0
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      hasLeft = true
      client[Symbol.dispose]()
    })
  try {
    for await (const line of client.stream('logs', request)) {
      printed += 1
      const isTaken = stdout.write(`${flags.json === true ? line : readableLine(line, hidden)}\n`)
      // Backpressure: the process drops its oldest lines for a slow reader and reports the number.
      if (!isTaken) await new Promise<void>((resolve) => void stdout.once('drain', resolve))
    }
  } catch (error) {
    if (!hasLeft) throw error
  }
  if (printed === 0 && !hasLeft && flags.json !== true) write(this, nothingFound(requestId))
}

function nothingFound(requestId: string | undefined): string {
  if (requestId === undefined) return 'no matching lines among the last 1000'
  return `no refusal and no log line with request id ${requestId} in the memory of this process; it holds the last 10,000 refusals`
}
