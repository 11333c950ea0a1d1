import { ServiceError } from '../../../../core/error.ts'
import { openControlClient } from '../../../../platform/process/control-client.ts'
import type { LogRequest } from '../../../../processes/compose/process/log-lines.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { sanitizeForTerminal } from '../../../output/plain-text.ts'
import { write } from '../../../output/print.ts'
import { controlPath } from './control.ts'

export type TailFlags = CommonFlags & {
  readonly sub?: string
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
  using client = await openControlClient(controlPath(this, flags))
  const request: LogRequest = { sub: flags.sub, level: flags.level, lines, follow: flags.follow === true }
  // With --sub the field would be the same in every line.
  const hidden = flags.sub === undefined ? [] : ['subscription', 'customer']
  let hasLeft = false
  let printed = 0
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      hasLeft = true
      client[Symbol.dispose]()
    })
  try {
    for await (const item of client.stream('logs', request)) {
      const line = String(item)
      printed += 1
      const isTaken = stdout.write(`${flags.json === true ? line : readableLine(line, hidden)}\n`)
      // Backpressure: the process drops its oldest lines for a slow reader and reports the number.
      if (!isTaken) await new Promise<void>((resolve) => void stdout.once('drain', resolve))
    }
  } catch (error) {
    if (!hasLeft) throw error
  }
  if (printed === 0 && !hasLeft && flags.json !== true) write(this, 'no matching lines among the last 1000')
}

/** A record as one line: time, level, module, message, fields. Control characters are replaced. */
export function readableLine(line: string, hidden: readonly string[] = []): string {
  const { time, level, part, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  const shown = Object.entries(fields).filter(([name]) => !hidden.includes(name))
  const message = shown.map(([name, value]) => `${name}=${fieldText(value)}`)
  const clock = typeof time === 'string' ? time.replace('T', ' ').replace('Z', '') : ' '.repeat(23)
  const words = [clock, word(level).toUpperCase().padEnd(5), word(part).padEnd(10), word(msg), ...message]
  return sanitizeForTerminal(words.join('  ').trimEnd())
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function fieldText(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value)
  return /^[\w.:/@+-]+$/.test(value) ? value : JSON.stringify(value)
}
