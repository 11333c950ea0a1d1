import { ServiceError } from '../../../../core/error.ts'
import { openControlClient } from '../../../../platform/process/control-client.ts'
import type { LogRequest } from '../../../../processes/compose/process/log-lines.ts'
import type { CliContext } from '../../../define.ts'
import { plainForTerminal } from '../../../output/plain-text.ts'
import { write } from '../../../output/print.ts'
import type { TailFlags } from '../logs.ts'
import { controlPath } from './control.ts'

const LINES_DEFAULT = 20
/** What the process keeps. */
const LINES_MAX = 1000

/** Lines that a running process wrote; with `--follow` until Ctrl-C or the end of the process. */
export async function tailLogs(this: CliContext, flags: TailFlags): Promise<void> {
  const lines = flags.lines === undefined ? LINES_DEFAULT : Number(flags.lines)
  if (!Number.isSafeInteger(lines) || lines < 0 || lines > LINES_MAX)
    throw new ServiceError('invalid-value', `"${flags.lines}" is not a number of lines from 0 to ${LINES_MAX}`)
  const { process } = this
  const stdout: NodeJS.WritableStream = process.stdout
  using client = await openControlClient(controlPath(this, flags))
  const request: LogRequest = { sub: flags.sub, level: flags.level, lines, follow: flags.follow === true }
  // Every line is of the one that was asked for.
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
      // A pipe that is read slowly holds this reader up; the process drops its oldest lines and says how many.
      if (!isTaken) await new Promise<void>((resolve) => void stdout.once('drain', resolve))
    }
  } catch (error) {
    if (!hasLeft) throw error
  }
  if (printed === 0 && !hasLeft && flags.json !== true) write(this, 'no such lines among the last 1000')
}

/** One record for a person: when, how bad, who says it, what, and its fields. Foreign text cannot steer the terminal. */
export function readableLine(line: string, hidden: readonly string[] = []): string {
  const { time, level, part, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  const shown = Object.entries(fields).filter(([name]) => !hidden.includes(name))
  const message = shown.map(([name, value]) => `${name}=${fieldText(value)}`)
  const clock = typeof time === 'string' ? time.replace('T', ' ').replace('Z', '') : ' '.repeat(23)
  const words = [clock, word(level).toUpperCase().padEnd(5), word(part).padEnd(10), word(msg), ...message]
  return plainForTerminal(words.join('  ').trimEnd())
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function fieldText(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value)
  return /^[\w.:/@+-]+$/.test(value) ? value : JSON.stringify(value)
}
