import { type ChildProcess, spawn } from 'node:child_process'
import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'

export type CommandResult =
  | { readonly ok: true }
  /** `reason` has the exit code or signal, and the beginning of what the program wrote to standard error. */
  | { readonly ok: false; readonly reason: string }

export type CommandOptions = {
  /** Program and arguments. No shell reads them. */
  readonly command: readonly string[]
  readonly input: string
  readonly timeoutMs: number
  /** The whole environment of the program: it inherits no secret. */
  readonly env: Readonly<Record<string, string>>
  /** Ends the program. */
  readonly signal?: AbortSignal | undefined
}

const STDERR_CHARS_MAX = 400

/** Runs a program with a text as its standard input, and waits until it has ended or its time is over. */
export function runCommand(
  { command, input, timeoutMs, env, signal: ending }: CommandOptions,
  { clock }: { clock: Clock },
): Promise<CommandResult> {
  const [file = '', ...args] = command
  let child: ChildProcess
  try {
    child = spawn(file, args, { stdio: ['pipe', 'ignore', 'pipe'], env })
  } catch (error) {
    // Arguments that the system does not take.
    return Promise.resolve(notStarted(file, error))
  }
  const { promise, resolve } = Promise.withResolvers<CommandResult>()
  let stderr = ''
  let isLate = false
  const kill = () => void child.kill('SIGKILL')
  const timer = clock.setTimer(timeoutMs, () => {
    isLate = true
    kill()
  })
  const end = (result: CommandResult) => {
    timer.cancel()
    ending?.removeEventListener('abort', kill)
    resolve(result)
  }
  child.on('error', (error) => end(notStarted(file, error)))
  child.once('exit', (code, signal) => {
    // A process that it left behind may hold standard error open.
    child.stderr?.destroy()
    if (code === 0) return end({ ok: true })
    const how = isLate ? `did not end within ${timeoutMs} ms` : `ended with ${signal ?? `code ${code}`}`
    const detail = stderr.trim() === '' ? '' : `: ${stderr.trim()}`
    end({ ok: false, reason: `${file} ${how}${detail}` })
  })
  // Without a free file descriptor there are no streams, and the error follows.
  child.stderr?.setEncoding('utf8')
  child.stderr?.on('data', (text: string) => {
    if (stderr.length < STDERR_CHARS_MAX) stderr = (stderr + text).slice(0, STDERR_CHARS_MAX)
  })
  // A program that does not read its input is no failure.
  child.stdin?.on('error', () => {})
  child.stdin?.end(input)
  if (ending?.aborted === true) kill()
  ending?.addEventListener('abort', kill)
  return promise
}

function notStarted(file: string, error: unknown): CommandResult {
  return { ok: false, reason: `${file} could not be started: ${messageOf(error)}` }
}
