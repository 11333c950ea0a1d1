import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { ALONE, BARE_ENV, CLI } from '../cli/run.ts'
import { chainCellEnv } from '../solana/chain-cell.ts'

export type Served = AsyncDisposable & {
  readonly child: ChildProcess
  /** The output so far. */
  stdout(): string
  stderr(): string
  /** Waits for a matching line; fails when the process ends first. */
  line(pattern: RegExp): Promise<string>
  /** Address of a listener, from the log. */
  address(service: string): Promise<string>
  /** Waits for its end and returns its exit code. */
  exit(): Promise<number | null>
  /** Ends it with a signal and returns its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** A fast start: no embedded chain, so no shreds, whose loss would be reported; system-chosen ports, no lame-duck period. */
export const SMALL = {
  SLUICE_METRICS__LISTEN: '127.0.0.1:0',
  SLUICE_ADMIN__LISTEN: '127.0.0.1:0',
  SLUICE_BUNDLE__RPC__LISTEN: '127.0.0.1:0',
  SLUICE_BUNDLE__WS__LISTEN: '127.0.0.1:0',
  SLUICE_BUNDLE__GRPC__LISTEN: '127.0.0.1:0',
  SLUICE_SENDER__LISTEN: '127.0.0.1:0',
  SLUICE_SHREDS__LISTEN: '127.0.0.1:0',
  SLUICE_SHREDS__SOURCE_LOST_MS: '600000',
  SLUICE_EXECUTION__LISTEN: '127.0.0.1:0',
  SLUICE_EXECUTION__ENABLED: 'false',
  SLUICE_INDEXER__LISTEN: '127.0.0.1:0',
  SLUICE_INDEXER__ENABLED: 'false',
  SLUICE_LOCALNET__ENABLED: 'false',
  SLUICE_DRAIN__LAME_DUCK_MS: '0',
}

const WAIT_MS = 90_000

function workersEnv(given: number | undefined): Record<string, string> {
  const workers = given ?? process.env['SLUICE_TEST_WORKERS']
  return workers === undefined ? {} : { SLUICE_BUNDLE__WORKERS: String(workers) }
}

/** A real `sluice serve` process, from the source or from another `program`. */
export function serve(options: {
  cwd: string
  /** Another command that serves. */
  command?: 'serve' | 'sender' | 'execution' | 'shreds' | 'gateway' | 'indexer run'
  args?: string[]
  env?: Record<string, string | undefined>
  program?: string
  /** Threads of the gateway, where the test concerns several; otherwise as `SLUICE_TEST_WORKERS` sets it. */
  workers?: number
}): Served {
  const source = ['--disable-warning=ExperimentalWarning', CLI]
  const child = spawn(
    options.program ?? process.execPath,
    [
      ...(options.program === undefined ? source : []),
      ...(options.command ?? 'serve').split(' '),
      ...(options.args ?? []),
    ],
    {
      cwd: options.cwd,
      env: { ...BARE_ENV, ...ALONE, ...SMALL, ...workersEnv(options.workers), ...options.env, ...chainCellEnv() },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let out = ''
  let talk = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (talk += chunk.toString()))
  // Not 'exit', which may be emitted before the last lines are read.
  let isOver = false
  child.once('close', () => (isOver = true))
  const ended = once(child, 'close')

  async function line(pattern: RegExp): Promise<string> {
    const signal = AbortSignal.timeout(WAIT_MS)
    for (;;) {
      const found = out
        .split('\n')
        .slice(0, -1)
        .find((text) => pattern.test(text))
      if (found !== undefined) return found
      if (isOver)
        throw new Error(
          `sluice serve ended with ${child.exitCode ?? child.signalCode} before ${pattern}:\n${out}\n${talk}`,
        )
      await Promise.race([once(child.stdout, 'data', { signal }), ended]).catch(() => {
        throw new Error(`no line like ${pattern} within ${WAIT_MS} ms:\n${out}\n${talk}`)
      })
    }
  }

  return {
    child,
    stdout: () => out,
    stderr: () => talk,
    line,
    async address(service) {
      const found = await line(new RegExp(`"service":"${service}".*"msg":"listening"`))
      return (JSON.parse(found) as { address: string }).address
    },
    async exit() {
      await ended
      return child.exitCode
    },
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal)
      await ended
      return child.exitCode
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await ended
    },
  }
}
