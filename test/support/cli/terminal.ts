import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { ALONE, BARE_ENV, CLI } from './run.ts'

export type OnTerminal = AsyncDisposable & {
  /** What the terminal shows so far, without carriage returns. */
  text(): string
  type(keys: string): void
  exit(): Promise<number | null>
}

const PROGRAM = `"${process.execPath}" --disable-warning=ExperimentalWarning "${CLI}"`

/** Runs `sluice …` on a terminal of its own, without colours. */
export function onTerminal(folder: string, line: string, env: Readonly<Record<string, string>> = {}): OnTerminal {
  const child = spawn('script', ['-qefc', `stty cols 150 rows 40; exec ${PROGRAM} ${line}`, '/dev/null'], {
    cwd: folder,
    env: { ...BARE_ENV, HOME: folder, NO_COLOR: '1', ...ALONE, ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString().replaceAll('\r', '')))
  const closed = once(child, 'close') as Promise<[number | null]>
  return {
    text: () => text,
    type: (keys) => void child.stdin.write(keys),
    exit: async () => (await closed)[0],
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await closed
    },
  }
}
