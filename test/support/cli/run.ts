import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const CLI = new URL('../../../src/cli/main.ts', import.meta.url).pathname

/**
 * The environment of a process that a test starts: nothing of the operator's, and the compile cache that the launcher sets. Without the cache
 * every start strips and compiles the whole source, a second of CPU time for a command and more for a service.
 */
export const BARE_ENV = {
  PATH: process.env['PATH'] ?? '',
  HOME: process.env['HOME'] ?? '/',
  NODE_COMPILE_CACHE:
    process.env['NODE_COMPILE_CACHE'] ?? new URL('../../../node_modules/.cache/sluice', import.meta.url).pathname,
}

export type CliResult = { code: number | null; stdout: string; stderr: string }

export type CliOptions = {
  cwd?: string
  env?: Record<string, string>
  input?: string
  timeoutMs?: number
  /** Without `--create-store` on the first command of a store. */
  isAsTyped?: boolean
  /** The `main.ts` of another checkout. */
  cli?: string
}

/** A runtime folder that does not exist: a test neither announces its processes nor finds those of other tests. */
export const ALONE = { XDG_RUNTIME_DIR: '/dev/null' }

/** Tests begin with an empty folder, where the operator would have run `sluice init` or `sluice serve`: the first command makes the store. */
export function onNewStore(words: readonly string[]): readonly string[] {
  const isFirst = words[1] === 'add' && (words[0] === 'customer' || words[0] === 'node')
  return isFirst && !words.includes('--help') ? [...words, '--create-store'] : words
}

/** Runs `sluice …` as a child process with standard output piped. */
export async function sluice(words: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const typed = options.isAsTyped === true ? words : onNewStore(words)
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', options.cli ?? CLI, ...typed], {
    cwd: options.cwd,
    env: { ...BARE_ENV, ...ALONE, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: options.timeoutMs ?? 60_000,
  })
  child.stdin.end(options.input ?? '')
  const chunks: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] }
  child.stdout.on('data', (chunk: Buffer) => chunks.stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.stderr.push(chunk))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  return { code, stdout: Buffer.concat(chunks.stdout).toString(), stderr: Buffer.concat(chunks.stderr).toString() }
}

/** A temporary folder, removed on disposal. */
export async function temporaryFolder(): Promise<AsyncDisposable & { path: string; file(name: string): string }> {
  const path = await mkdtemp(join(tmpdir(), 'sluice-test-'))
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}

/** Splits a command line as a shell does, limited to what the help examples use: spaces and double quotes. */
export function splitWords(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map((match) => match[1] ?? match[2] ?? '')
}
